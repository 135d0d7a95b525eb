/*
 * The fixed parts of the metadata, as text. The writer prints them, and the parser compares them token by token. So the
 * reader assumes the layout that the trace declares. What varies (uuid, env, clock, events) stands between them.
 */
#ifndef KYMO_CTF_TSDL_H
#define KYMO_CTF_TSDL_H

/* Of the layout and of this dialect; stands in the env block. */
#define KYMO_TSDL_FORMAT 1        /* plain records */
#define KYMO_TSDL_FORMAT_PACKED 2 /* packed ones */

#define TSDL_TYPE_(name, bits, is_signed, base) \
	"typealias integer { size = " #bits "; align = 8; signed = " #is_signed "; byte_order = le; base = " #base \
	"; } := " #name ";\n"

/* clang-format off */
#define KYMO_TSDL_TYPES \
	TSDL_TYPE_(u8, 8, false, 10) \
	TSDL_TYPE_(u16, 16, false, 10) \
	TSDL_TYPE_(u32, 32, false, 10) \
	TSDL_TYPE_(u64, 64, false, 10) \
	TSDL_TYPE_(s8, 8, true, 10) \
	TSDL_TYPE_(s16, 16, true, 10) \
	TSDL_TYPE_(s32, 32, true, 10) \
	TSDL_TYPE_(s64, 64, true, 10) \
	TSDL_TYPE_(x8, 8, false, 16) \
	TSDL_TYPE_(x16, 16, false, 16) \
	TSDL_TYPE_(x32, 32, false, 16) \
	TSDL_TYPE_(x64, 64, false, 16)
/* clang-format on */

/* Only where some field is one. Strings need no such line: `string` is a type of TSDL, UTF-8 unless it says something
 * else. */
#define KYMO_TSDL_REAL "typealias floating_point { exp_dig = "
#define KYMO_TSDL_F64_REST "11; mant_dig = 53; align = 8; byte_order = le; } := f64;\n"
#define KYMO_TSDL_F32_REST "8; mant_dig = 24; align = 8; byte_order = le; } := f32;\n"
#define KYMO_TSDL_F64 KYMO_TSDL_REAL KYMO_TSDL_F64_REST
#define KYMO_TSDL_F32 KYMO_TSDL_REAL KYMO_TSDL_F32_REST

/* Of characters: an integer that names an encoding. Names are strings, as a C++ or Rust enumerator is no identifier. */
#define KYMO_TSDL_CHARACTER_(is_signed) \
	"integer { size = 8; align = 8; signed = " is_signed "; byte_order = le; encoding = UTF8; base = 10; }"
#define KYMO_TSDL_S8_CHARACTER KYMO_TSDL_CHARACTER_("true")
#define KYMO_TSDL_U8_CHARACTER KYMO_TSDL_CHARACTER_("false")

/*
 * Structures, as memory has them. Members of the program's have "_" before their name; others are
 *
 *	padding1		bits or bytes that are of no member
 *	anonymous1		a structure or union without a name; or an array
 *	base_NAME		a base class
 *	struct { } union	this is a union: members but the first are empty arrays, "u32 _x[0]"
 *	struct { } cut		there are more members, which are not recorded
 *	u8 cut[8]		in place of all members: the structure is too deep
 *
 * A structure whose only member is anonymous1, an array, stands for that: it is a row of an array of several
 * dimensions.
 *
 * A field that is one structure is a variant: it may be absent, where memory was not there.
 */
#define KYMO_TSDL_PADDING "padding"
#define KYMO_TSDL_ANONYMOUS "anonymous"
#define KYMO_TSDL_BASE "base_"
#define KYMO_TSDL_UNION "union"
#define KYMO_TSDL_CUT "cut"
#define KYMO_TSDL_PRESENT_TYPE "enum : u16 { \"absent\" = 0, \"present\" = 1 }"

#define KYMO_TSDL_TRACE_HEAD \
	"trace {\n" \
	"\tmajor = 1;\n" \
	"\tminor = 8;\n" \
	"\tbyte_order = le;\n" \
	"\tpacket.header := struct {\n" \
	"\t\tu32 magic;\n" \
	"\t\tu8 uuid[16];\n" \
	"\t\tu32 stream_id;\n" \
	"\t};\n" \
	"\tuuid = " /* string */
#define KYMO_TSDL_TRACE_TAIL ";\n};\n"

#define TSDL_STAMP_(bits, align) \
	"integer { size = " #bits "; align = " #align "; signed = false; byte_order = le; map = clock.kymo.value; }"

/* clang-format off */
#define KYMO_TSDL_STREAM \
	"stream {\n" \
	"\tid = 0;\n" \
	"\tpacket.context := struct {\n" \
	"\t\tu64 content_size;\n" \
	"\t\tu64 packet_size;\n" \
	"\t\t" TSDL_STAMP_(64, 8) " timestamp_begin;\n" \
	"\t\t" TSDL_STAMP_(64, 8) " timestamp_end;\n" \
	"\t\tu64 events_discarded;\n" \
	"\t\tu64 packet_seq_num;\n" \
	"\t\tu32 cpu_id;\n" \
	"\t};\n" \
	"\tevent.header := struct {\n"
#define KYMO_TSDL_PLAIN \
	"\t\tinteger { size = 20; align = 1; signed = false; byte_order = le; } id;\n" \
	"\t\t" TSDL_STAMP_(44, 1) " timestamp;\n" \
	"\t} align(8);\n" \
	"\tevent.context := struct {\n" \
	"\t\ts32 tid;\n" \
	"\t};\n" \
	"};\n"
#define KYMO_TSDL_PACKED \
	"\t\tenum : integer { size = 5; align = 1; signed = false; byte_order = le; } " \
	"{ thread = 0, compact = 1 ... 30, wide = 31 } id;\n" \
	"\t\tvariant <id> {\n" \
	"\t\t\tstruct {\n" \
	"\t\t\t\t" TSDL_STAMP_(59, 1) " timestamp;\n" \
	"\t\t\t} thread;\n" \
	"\t\t\tstruct {\n" \
	"\t\t\t\t" TSDL_STAMP_(27, 1) " timestamp;\n" \
	"\t\t\t} compact;\n" \
	"\t\t\tstruct {\n" \
	"\t\t\t\tinteger { size = 20; align = 1; signed = false; byte_order = le; } id;\n" \
	"\t\t\t\t" TSDL_STAMP_(39, 1) " timestamp;\n" \
	"\t\t\t} wide;\n" \
	"\t\t} v;\n" \
	"\t} align(8);\n" \
	"};\n" \
	"event {\n" \
	"\tname = \"kymo:thread\";\n" \
	"\tid = 0;\n" \
	"\tstream_id = 0;\n" \
	"\tfields := struct {\n" \
	"\t\t/* the thread of the records that follow in the packet */\n" \
	"\t\ts32 _tid;\n" \
	"\t};\n" \
	"};\n"
/* clang-format on */

#define KYMO_TSDL_FAULTS "\tcontext := struct { x8 faults; };\n"

#endif
