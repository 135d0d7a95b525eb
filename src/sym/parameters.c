/*
 * Parameters by DWARF (libdw). Two sources agree on where a parameter is when its function is entered: a location that
 * holds at this address, and the calling convention (System V ABI for x86-64, 3.2.3). The location is believed where it
 * is a register. A location in the frame is one that the function's beginning is yet to fill; then the convention
 * holds, for as long as all parameters before are of kinds whose registers are certain.
 *
 * The image of the module has no debug information (image.h), so the file is opened once more.
 */
#include "sym/parameters.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/module.h"

/* Those that pass integers and pointers, in order, by their DWARF numbers: rdi rsi rdx rcx r8 r9. */
static const int passing[] = { 5, 4, 1, 2, 8, 9 };

#define REGISTERS 16

/* What passes parameters so far. */
struct passing {
	size_t n;       /* registers that are taken */
	bool is_lost;   /* nobody knows how many */
	uint64_t entry; /* of the function */
};

static void end_dwarf(Dwarf **dwarf)
{
	dwarf_end(*dwarf);
}

/* ---- the function ------------------------------------------------------------------------------------------------ */

static bool is_c(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

/* What dwarf_getfuncs() looks for, in each unit: .debug_aranges would lead there, and clang leaves it out. */
struct search {
	uint64_t entry;
	Dwarf_Die function;
	bool is_found;
};

static int look_at_function(Dwarf_Die *function, void *data)
{
	struct search *search = data;
	Dwarf_Addr entry;

	if (dwarf_entrypc(function, &entry) || entry != search->entry)
		return DWARF_CB_OK;
	search->function = *function;
	search->is_found = true;
	return DWARF_CB_ABORT;
}

static bool find_function(Dwarf *dwarf, uint64_t entry, Dwarf_Die *ret, bool *is_c_ret)
{
	struct search search = { .entry = entry };
	Dwarf_Off offset = 0, next;
	Dwarf_Die unit;
	size_t size;

	for (; !search.is_found && !dwarf_nextcu(dwarf, offset, &next, &size, NULL, NULL, NULL) && next > offset;
	     offset = next)
		if (dwarf_offdie(dwarf, offset + size, &unit))
			dwarf_getfuncs(&unit, look_at_function, &search, 0);
	if (!search.is_found)
		return false;
	*ret = search.function;
	*is_c_ret = dwarf_diecu(ret, &unit, NULL, NULL) && is_c(&unit);
	return true;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* What of a type matters: whether it is passed in a general register, and how it is read there. */
enum passed { IN_REGISTER, IN_VECTOR, IN_MEMORY, UNKNOWN };

static enum passed float_passed(int size)
{
	if (size == 16)
		return IN_MEMORY;
	return size == 4 || size == 8 ? IN_VECTOR : UNKNOWN;
}

static enum passed base_type_passed(Dwarf_Die *type, struct kymo_parameter *parameter)
{
	const int size = dwarf_bytesize(type);
	Dwarf_Attribute attribute;
	Dwarf_Word encoding = 0;

	if (dwarf_formudata(dwarf_attr(type, DW_AT_encoding, &attribute), &encoding))
		return UNKNOWN;
	if (encoding == DW_ATE_float) {
		parameter->why = "is a floating-point number";
		return float_passed(size);
	}
	parameter->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return UNKNOWN;
	parameter->size = (uint8_t)size;
	return IN_REGISTER;
}

/* The type that the DIE's attribute names, without typedefs and qualifiers. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, ret) &&
	       !dwarf_peel_type(ret, ret);
}

static enum passed type_passed(Dwarf_Die *type, struct kymo_parameter *parameter)
{
	Dwarf_Die below;
	int size;

	parameter->why = "is no integer and no pointer";
	switch (dwarf_tag(type)) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		parameter->size = 8;
		return IN_REGISTER;
	case DW_TAG_base_type:
		return base_type_passed(type, parameter);
	case DW_TAG_enumeration_type:
		if (type_of(type, &below))
			return base_type_passed(&below, parameter);
		size = dwarf_bytesize(type);
		parameter->size = (uint8_t)size;
		return size == 1 || size == 2 || size == 4 || size == 8 ? IN_REGISTER : UNKNOWN;
	default: /* a structure takes registers by what is in it, and in C++ by what its class does */
		return UNKNOWN;
	}
}

/* ---- where it is ------------------------------------------------------------------------------------------------- */

enum place { IN_ONE_REGISTER, IN_FRAME, NOWHERE };

static enum place place_of(Dwarf_Die *die, uint64_t entry, int *register_ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr(die, DW_AT_location, &attribute) ||
	    dwarf_getlocation_addr(&attribute, entry, &ops, &n, 1) != 1 || n != 1)
		return NOWHERE;
	if (ops->atom >= DW_OP_reg0 && ops->atom < DW_OP_reg0 + REGISTERS) {
		*register_ret = ops->atom - DW_OP_reg0;
		return IN_ONE_REGISTER;
	}
	return ops->atom == DW_OP_fbreg ? IN_FRAME : NOWHERE;
}

static void find_place(Dwarf_Die *die, enum passed passed, struct passing *passing_ret,
		       struct kymo_parameter *parameter)
{
	const size_t i = passing_ret->n;
	const bool is_passed = passed == IN_REGISTER && !passing_ret->is_lost && i < kymo_countof(passing);
	int number;

	parameter->register_number = -1;
	passing_ret->n += passed == IN_REGISTER;
	passing_ret->is_lost |= passed == UNKNOWN;
	if (passed != IN_REGISTER)
		return;
	switch (place_of(die, passing_ret->entry, &number)) {
	case IN_ONE_REGISTER:
		parameter->register_number = number;
		break;
	case IN_FRAME:
		if (is_passed)
			parameter->register_number = passing[i];
		else
			parameter->why = i < kymo_countof(passing) ? "comes behind a structure that is passed by value"
								   : "is passed on the stack";
		break;
	case NOWHERE:
		parameter->why = "is not told to be anywhere where the function is entered";
		break;
	}
	if (parameter->register_number >= 0)
		parameter->why = NULL;
}

static struct kymo_error *add(Dwarf_Die *die, struct passing *how, struct kymo_parameters *parameters)
{
	struct kymo_parameter parameter = { .size = 0 };
	const char *name = dwarf_diename(die);
	enum passed passed = UNKNOWN;
	Dwarf_Die type;

	if (type_of(die, &type))
		passed = type_passed(&type, &parameter);
	find_place(die, passed, how, &parameter);
	if (!name)
		return NULL;
	parameter.name = strdup(name);
	if (parameter.name && kymo_vec_push(&parameters->items, parameter))
		return NULL;
	free(parameter.name);
	return &kymo_error_no_memory;
}

/* A structure that is returned may take the first register for where it goes. */
static bool returns_simply(Dwarf_Die *function)
{
	struct kymo_parameter value = { .size = 0 };
	Dwarf_Attribute attribute;
	Dwarf_Die type;

	if (!dwarf_attr_integrate(function, DW_AT_type, &attribute))
		return true; /* void */
	return type_of(function, &type) && type_passed(&type, &value) != UNKNOWN;
}

static struct kymo_error *add_all(Dwarf_Die *function, uint64_t entry, struct kymo_parameters *parameters)
{
	struct passing how = { .entry = entry, .is_lost = !returns_simply(function) };
	struct kymo_error *error = NULL;
	Dwarf_Die die;

	if (dwarf_child(function, &die))
		return NULL;
	do {
		if (dwarf_tag(&die) == DW_TAG_formal_parameter)
			error = add(&die, &how, parameters);
	} while (!error && !dwarf_siblingof(&die, &die));
	return error;
}

struct kymo_error *kymo_module_parameters(const struct kymo_module *module, uint64_t vaddr, struct kymo_parameters *ret)
{
	kymo_cleanup_close int fd = -1;
	kymo_cleanup(end_dwarf) Dwarf *dwarf = NULL;
	struct kymo_parameters parameters = { 0 };
	struct kymo_error *error;
	Dwarf_Die function;
	bool is_of_c;

	if (module->debug.path)
		fd = open(module->debug.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		fd = open(module->image.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return kymo_error_errno(errno, "%s", module->image.path);
	elf_version(EV_CURRENT);
	dwarf = dwarf_begin(fd, DWARF_C_READ); /* and not by mmap: its owner may cut the file short */
	if (!dwarf)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no debug information", kymo_module_path(module));
	if (!find_function(dwarf, vaddr, &function, &is_of_c))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "the debug information of %s has no such function",
					 kymo_module_path(module));
	if (!is_of_c)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "its language is neither C nor C++, which pass parameters as kymo knows it");
	error = add_all(&function, vaddr, &parameters);
	if (error)
		kymo_parameters_deinit(&parameters);
	else
		*ret = parameters;
	return error;
}

void kymo_parameters_deinit(struct kymo_parameters *parameters)
{
	for (size_t i = 0; i < parameters->items.n; i++)
		free(parameters->items.items[i].name);
	kymo_vec_deinit(&parameters->items);
}
