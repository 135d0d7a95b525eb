#include "probe/code/resolver.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "probe/code/code.h"
#include "probe/code/missing.h"
#include "probe/code/offset.h"
#include "probe/code/targets.h"
#include "probe/code/words.h"
#include "sym/find.h"
#include "sym/functions.h"
#include "sym/sym.h"

static void warn(const struct probe_resolver *resolver, const char *sentence)
{
	resolver->ops->warn(resolver->data, sentence);
}

static struct kymo_error *refuse(const struct probe_resolver *resolver, const struct probe_meaning *meaning,
				 const char *location, const char *reason)
{
	return resolver->ops->refuse(resolver->data, meaning, location, reason);
}

static struct kymo_error *get_code(const struct probe_resolver *resolver, const struct probe_meaning *meaning,
				   struct kymo_code **ret)
{
	return resolver->ops->code(resolver->data, meaning->module, ret);
}

static struct kymo_error *add_instructions(const struct probe_resolver *resolver, const struct probe_meaning *meaning,
					   uint64_t vaddr)
{
	const struct kymo_function *function = kymo_module_function_at(resolver->module, vaddr);
	kymo_cleanup_free uint64_t *starts = NULL;
	char location[PROBE_LOCATION_MAX];
	struct kymo_code *code;
	struct kymo_error *error = get_code(resolver, meaning, &code);
	size_t n = 0;
	int err;

	if (error)
		return error;
	err = function ? kymo_instructions_create(code->map, function->start, function->end, &starts, &n) : -EPERM;
	if (err == -ENOMEM)
		return &kymo_error_no_memory;
	kymo_module_describe(resolver->module, vaddr, location, sizeof(location));
	if (err)
		return refuse(resolver, meaning, location, "it is not known where its instructions begin");
	for (size_t i = 0; i < n && !error; i++) {
		kymo_module_describe(resolver->module, starts[i], location, sizeof(location));
		error = resolver->ops->add(resolver->data, meaning, starts[i], location, PROBE_FOUND_SWEPT);
	}
	return error;
}

static struct kymo_error *resolve_target(const struct probe_resolver *resolver,
					 const struct probe_meaning *spec_meaning, const struct probe_target *target)
{
	const struct kymo_spec *spec = resolver->spec;
	const uint64_t vaddr = target->vaddr + (uint64_t)spec->offset;
	struct probe_meaning meaning = *spec_meaning;
	struct kymo_error *error;
	char location[PROBE_LOCATION_MAX];

	meaning.is_exact &= !target->is_one_of_many;
	probe_target_location(spec, target, location, sizeof(location));
	if (target->refusal)
		return refuse(resolver, &meaning, location, target->refusal);
	error = kymo_check_offset(spec, resolver->module, target->vaddr);
	if (error)
		return error;
	if (spec->every_instruction)
		return add_instructions(resolver, &meaning, vaddr);
	if (spec->is_return)
		return resolver->ops->add_return(resolver->data, &meaning, vaddr, target->function, location);
	return resolver->ops->add(resolver->data, &meaning, vaddr, location,
				  spec->offset ? PROBE_FOUND_OFFSET : PROBE_FOUND_SYMBOL);
}

/* By address, so that sites are appended, not inserted. */
static struct kymo_error *resolve_targets(const struct probe_resolver *resolver, const struct probe_meaning *meaning,
					  const struct probe_targets *targets)
{
	struct kymo_error *error = NULL;
	char text[2000];

	for (size_t i = 0; i < targets->list.n && !error; i++)
		error = resolve_target(resolver, meaning, &targets->list.items[i]);
	if (!error && *targets->shared) {
		snprintf(text, sizeof(text), PROBE_IS_SHARED, resolver->spec->text, targets->shared);
		warn(resolver, text);
	}
	return error;
}

static struct kymo_error *resolve_symbol(const struct probe_resolver *resolver,
					 const struct probe_meaning *spec_meaning, bool *met_ret)
{
	const struct kymo_spec *spec = resolver->spec;
	struct probe_meaning meaning = *spec_meaning;
	kymo_cleanup_free const struct kymo_symbol **found = NULL;
	struct probe_targets targets;
	struct kymo_code *code = NULL;
	struct kymo_error *error;
	char text[2000];
	size_t n = 0;

	error = kymo_module_find(resolver->module, spec->symbol, &found, &n);
	if (error)
		return error;
	if (!n)
		return kymo_no_such_function(resolver->module, spec->file, spec->symbol);
	error = probe_check_overloads(spec, found, n);
	if (error)
		return error;
	if (probe_is_overloaded(spec, found, n)) {
		probe_overloads_text(spec, found, n, text, sizeof(text));
		warn(resolver, text);
		meaning.is_exact = false;
	}
	if (probe_has_indirect(found, n))
		error = get_code(resolver, &meaning, &code);
	if (!error)
		error = probe_targets_init(spec, resolver->module, code, found, n, &targets);
	if (error)
		return error;
	*met_ret = true;
	error = resolve_targets(resolver, &meaning, &targets);
	probe_targets_deinit(&targets);
	return error;
}

static struct kymo_error *resolve_offset(const struct probe_resolver *resolver, const struct probe_meaning *meaning,
					 bool *met_ret)
{
	const struct kymo_spec *spec = resolver->spec;
	char location[PROBE_LOCATION_MAX];
	uint64_t vaddr;
	struct kymo_error *error = probe_spec_offset(spec, resolver->module, &vaddr);

	if (error)
		return error;
	*met_ret = true;
	probe_describe(spec, resolver->module, vaddr, location, sizeof(location));
	if (spec->is_return)
		return resolver->ops->add_return(resolver->data, meaning, vaddr, location, location);
	return resolver->ops->add(resolver->data, meaning, vaddr, location, PROBE_FOUND_OFFSET);
}

struct kymo_error *probe_resolve(const struct probe_resolver *resolver, const struct probe_meaning *meaning,
				 bool *met_ret)
{
	return resolver->spec->symbol ? resolve_symbol(resolver, meaning, met_ret)
				      : resolve_offset(resolver, meaning, met_ret);
}
