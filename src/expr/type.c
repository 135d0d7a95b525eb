#include "expr/type.h"

enum kymo_type kymo_expr_record_type(struct kymo_expr_type type)
{
	static const enum kymo_type types[9][2] = {
		[1] = { KYMO_TYPE_U8, KYMO_TYPE_S8 },
		[2] = { KYMO_TYPE_U16, KYMO_TYPE_S16 },
		[4] = { KYMO_TYPE_U32, KYMO_TYPE_S32 },
		[8] = { KYMO_TYPE_U64, KYMO_TYPE_S64 },
	};

	return types[type.size][type.is_signed];
}

const char *kymo_expr_type_name(struct kymo_expr_type type)
{
	static const char *const names[9][2] = {
		[1] = { "unsigned char", "signed char" },
		[2] = { "unsigned short", "short" },
		[4] = { "unsigned int", "int" },
		[8] = { "unsigned long", "long" },
	};

	return names[type.size][type.is_signed];
}
