#include "cli/forced_returns.h"

#include <fnmatch.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "probe/spec/spec.h"
#include "sym/debug.h"
#include "sym/demangle.h"
#include "sym/sym.h"

/* Functions of which compilers know that they never return: after a call there is other code, or none. */
static const char *const never_return[] = {
	"abort",
	"exit",
	"_exit",
	"_Exit",
	"quick_exit",
	"__assert_fail",
	"__assert",
	"__assert_perror_fail",
	"__stack_chk_fail",
	"__fortify_fail",
	"__chk_fail",
	"__libc_fatal",
	"longjmp",
	"_longjmp",
	"siglongjmp",
	"__longjmp_chk",
	"setcontext",
	"pthread_exit",
	"thrd_exit",
	"err",
	"errx",
	"verr",
	"verrx",
	"__cxa_throw",
	"__cxa_rethrow",
	"__cxa_bad_cast",
	"__cxa_pure_virtual",
	"_Unwind_Resume",
	"_ZSt9terminatev",
	"_ZSt*__throw_*",
	"rust_panic",
	"rust_begin_unwind",
	"_ZN4core9panicking*",
	"g_assertion_message*",
};

static bool never_returns(struct kymo_debug *debug, const struct kymo_symbol *function)
{
	for (size_t i = 0; i < kymo_countof(never_return); i++)
		if (!fnmatch(never_return[i], function->name, 0))
			return true;
	return debug && kymo_debug_never_returns(debug, function->vaddr);
}

static struct kymo_error *refuse(const struct kymo_spec *spec, const struct kymo_symbol *function, const char *why)
{
	kymo_cleanup_free char *shown = kymo_shown(function->name);

	return shown ? kymo_error_create(KYMO_ERROR_USAGE, "'%s': '%s' %s", kymo_spec_typed(spec), shown, why)
		     : &kymo_error_no_memory;
}

static struct kymo_error *check_result(const struct kymo_spec *spec, struct kymo_debug *debug,
				       const struct kymo_symbol *function)
{
	const struct kymo_ctype *type;
	enum kymo_returned returned;
	struct kymo_error *error = kymo_debug_return_type(debug, function->vaddr, &type, &returned);

	if (error && error->code != KYMO_ERROR_NO_MEMORY) {
		kymo_error_destroy(error); /* nothing is known of it */
		return NULL;
	}
	if (error)
		return error;
	switch (returned) {
	case KYMO_RETURNED_NOTHING:
		return spec->returns_as_is ? NULL
					   : refuse(spec, function,
						    "returns nothing, and its caller may rely on %ax: write 'return' "
						    "without a value");
	case KYMO_RETURNED_VECTOR:
		return spec->returns_as_is
			       ? NULL
			       : refuse(spec, function,
					"returns its result in a vector register, which kymo does not write");
	case KYMO_RETURNED_MEMORY:
		return refuse(spec, function, "returns its result in memory, which kymo does not write");
	case KYMO_RETURNED_UNKNOWN:
		return refuse(spec, function, "returns its result in registers that are not certain");
	default:
		return NULL;
	}
}

struct kymo_error *cli_check_forced_return(const struct kymo_spec *spec, struct kymo_debug *debug,
					   const struct kymo_symbol *const *functions, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (functions[i]->vaddr != functions[0]->vaddr)
			return kymo_error_create(
				KYMO_ERROR_USAGE,
				"'%s' means %zu functions, and 'return' is for one: write its parameters, "
				"or its name as 'kymo list --no-demangle' has it",
				kymo_spec_typed(spec), n);
	if (!n)
		return NULL;
	if (never_returns(debug, functions[0]))
		return refuse(spec, functions[0],
			      "never returns, so its callers have no code to go on with; let its caller return");
	return debug ? check_result(spec, debug, functions[0]) : NULL;
}
