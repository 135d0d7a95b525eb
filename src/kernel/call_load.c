#include "kernel/call_load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/call_object.h"
#include "kernel/refused.h"

struct kernel_call_copy call_load_copy(const struct kymo_copy *from)
{
	return (struct kernel_call_copy){
		.what = from->what,
		.arg = from->arg,
		.times = from->times,
		.is_pointer = from->is_pointer,
		.offset = from->offset,
		.size = from->size ? from->size : 1,
		.max = from->max,
		.most = from->max / (from->size ? from->size : 1),
	};
}

int32_t call_load_room(const struct kymo_copy *copies, size_t n)
{
	int32_t room = 0;

	for (size_t i = 0; i < n && room <= KERNEL_CALL_SMALL; i++) {
		const struct kymo_copy *copy = &copies[i];
		const int most = copy->times ? copy->max : copy->size;

		if (copy->what == KYMO_COPY_BYTES) /* they may lie in two pages */
			room += MAX(most, KERNEL_CALL_PIECE_MIN) + 2 * (KERNEL_CALL_PIECE_HEADER + 7);
		else if (copy->what == KYMO_COPY_STRING)
			room += copy->max + KERNEL_CALL_PIECE_HEADER + 7;
		else
			return -1;
	}
	return n <= KERNEL_CALL_SMALL_COPIES && room <= KERNEL_CALL_SMALL ? (room + 7) & ~7 : -1;
}

static struct kymo_error *lacks(const char *what)
{
	return kymo_error_create(KYMO_ERROR_FAILED, "the BPF programs of system calls lack their %s", what);
}

struct kymo_error *call_load_open(struct bpf_object **ret, struct kernel_call_rows **rows_ret)
{
	struct bpf_object *object;
	struct bpf_map *rows;

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return kymo_error_create(
			KYMO_ERROR_NOT_FOUND,
			"this kernel does not describe its structures (/sys/kernel/btf/vmlinux), so system calls "
			"cannot be seen through it; leave --backend kernel and --all out");
	object = bpf_object__open_mem(call_object, sizeof(call_object), NULL);
	if (!object)
		return kymo_error_errno(errno, "cannot read the BPF programs of system calls");
	*ret = object;
	rows = bpf_object__find_map_by_name(object, ".bss.rows");
	*rows_ret = rows ? (void *)bpf_map__initial_value(rows, &(size_t){ 0 }) : NULL;
	return *rows_ret ? NULL : lacks("table");
}

/* The verifier takes its time, so what nothing needs is left out. */
static int choose_programs(const struct bpf_object *object, const struct call_load *load)
{
	const struct {
		const char *name;
		bool is_needed;
	} programs[] = {
		{ "copy_entry", load->is_large[KERNEL_CALL_ENTER] },
		{ "copy_exit", load->is_large[KERNEL_CALL_LEAVE] },
		{ "see_signal", load->signals },
		{ "follow_exit", load->follow },
		{ "follow_fork", load->follow },
	};
	int err = 0;

	for (size_t i = 0; i < kymo_countof(programs) && !err; i++)
		err = bpf_program__set_autoload(bpf_object__find_program_by_name(object, programs[i].name),
						programs[i].is_needed);
	return err;
}

/* Where programs go on with a call whose copies may be large. */
static int put_program(const struct bpf_object *object, const char *array, const char *program)
{
	const int fd = bpf_program__fd(bpf_object__find_program_by_name(object, program));
	const struct bpf_map *map = bpf_object__find_map_by_name(object, array);

	return fd < 0 ? 0 : bpf_map_update_elem(bpf_map__fd(map), &(uint32_t){ 0 }, &fd, BPF_ANY);
}

struct kymo_error *call_load(struct bpf_object *object, const struct call_load *load)
{
	struct bpf_map *processes = bpf_object__find_map_by_name(object, ".bss.processes");
	struct bpf_map *ring = bpf_object__find_map_by_name(object, "ring");
	struct bpf_map *scratch = bpf_object__find_map_by_name(object, "scratch");
	struct bpf_map *options = bpf_object__find_map_by_name(object, ".rodata.options");
	int err;

	if (!processes || !ring || !scratch || !options)
		return lacks("maps");
	err = bpf_map__set_initial_value(options, &load->options, sizeof(load->options));
	if (!err)
		err = bpf_map__reuse_fd(ring, load->ring_fd);
	if (!err)
		err = load->processes_fd >= 0 ? bpf_map__reuse_fd(processes, load->processes_fd)
					      : bpf_map__set_autocreate(processes, false);
	if (!err)
		err = bpf_map__set_max_entries(scratch, load->n_cpus);
	if (!err)
		err = choose_programs(object, load);
	if (!err)
		err = bpf_object__load(object);
	if (!err)
		err = put_program(object, "copying_entry", "copy_entry");
	if (!err)
		err = put_program(object, "copying_exit", "copy_exit");
	if (err == -EACCES && !geteuid()) /* it is not the rights that are missing */
		return kymo_error_create(KYMO_ERROR_FAILED,
					 "this kernel's verifier does not accept the BPF programs of system calls; "
					 "leave --backend kernel and --all out, and report the kernel's version");
	return err ? kernel_refused(-err, "load BPF programs") : NULL;
}

struct kymo_error *call_load_run(const struct bpf_object *object, const char *program, int *ret)
{
	*ret = bpf_raw_tracepoint_open(NULL, bpf_program__fd(bpf_object__find_program_by_name(object, program)));
	return *ret < 0 ? kernel_refused(errno, "run BPF programs at tracepoints") : NULL;
}
