/* The pieces that all decoders are made of, and the kinds of argument that many calls have. */
#include "syscall/print.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/param.h>
#include <sys/sysmacros.h>

#include "base/page.h"
#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/errors.h"
#include "syscall/line.h"

enum {
	REST_MAX = 4096,       /* the kernel takes no larger structure */
	MEMFD_NAME_SIZE = 250, /* with its NUL */
};

/* ---- memory ---------------------------------------------------------------------------------- */

bool fetch(struct decode *d, uint64_t address, void *out, size_t size)
{
	return address && d->target->read(d->target->context, address, out, size) == size;
}

bool call_failed(const struct decode *d)
{
	return d->is_leaving && kymo_syscall_failed(d->call);
}

bool fetch_or_put(struct decode *d, uint64_t address, void *out, size_t size)
{
	if (!(d->is_output && call_failed(d)) && fetch(d, address, out, size))
		return true;
	put_address(d, address);
	return false;
}

size_t shown_elements(const struct decode *d)
{
	enum { WHOLE_MAX = 1 << 16 };

	return d->target->is_whole ? WHOLE_MAX : d->target->string_size;
}

void put_array(struct decode *d, uint64_t address, uint64_t n, size_t element_size,
	       void (*element)(struct decode *d, const void *bytes))
{
	_Alignas(16) char bytes[128];

	if (!address || (d->is_output && call_failed(d)) || (n && !fetch(d, address, bytes, element_size))) {
		put_address(d, address);
		return;
	}
	puts_(d, "[");
	for (uint64_t i = 0; i < n; i++) {
		if (i)
			puts_(d, ", ");
		if (!fetch(d, address + i * element_size, bytes, element_size)) {
			put(d, "... /* 0x%" PRIx64 " */", address + i * element_size);
			break;
		}
		if (i >= shown_elements(d)) {
			puts_(d, "...");
			break;
		}
		element(d, bytes);
	}
	puts_(d, "]");
}

/* ---- single values --------------------------------------------------------------------------- */

void put_address(struct decode *d, uint64_t address)
{
	if (address)
		put(d, "0x%" PRIx64, address);
	else
		puts_(d, "NULL");
}

static void put_fd_path(struct decode *d, int fd)
{
	static const char deleted[] = " (deleted)";
	const size_t tail = sizeof(deleted) - 1;
	char path[PATH_MAX];
	size_t n;

	if (!d->target->fd_path)
		return;
	n = d->target->fd_path(d->target->context, fd, path, sizeof(path) - 1);
	if (!n)
		return;
	path[n] = '\0';
	if (d->target->put_fd && d->target->put_fd(d->target->context, fd, path, n, d->text))
		return;
	puts_(d, "<");
	if (n > tail && !memcmp(path + n - tail, deleted, tail)) {
		kymo_line_escape(d->text, path, n - tail, "<>");
		puts_(d, ">(deleted)");
		return;
	}
	kymo_line_escape(d->text, path, n, "<>");
	puts_(d, ">");
}

void put_fd(struct decode *d, int fd)
{
	put(d, "%d", fd);
	if (fd >= 0)
		put_fd_path(d, fd);
}

void put_dirfd(struct decode *d, int fd)
{
	if (fd != AT_FDCWD) {
		put_fd(d, fd);
		return;
	}
	put_constant(d, "AT_FDCWD", AT_FDCWD);
	put_fd_path(d, fd);
}

void put_permissions(struct decode *d, unsigned mode)
{
	put(d, "%#03o", mode);
}

void put_device(struct decode *d, uint64_t device)
{
	const enum kymo_constants style = d->target->style.constants;

	if (style != KYMO_CONSTANTS_NAMES)
		put(d, "%#" PRIx64, device);
	if (style != KYMO_CONSTANTS_NUMBERS)
		put(d, style == KYMO_CONSTANTS_BOTH ? " /* makedev(%#x, %#x) */" : "makedev(%#x, %#x)", major(device),
		    minor(device));
}

void put_id(struct decode *d, unsigned id)
{
	if (id == UINT_MAX)
		puts_(d, "-1");
	else
		put(d, "%u", id);
}

static void put_id_here(struct decode *d, pid_t id, pid_t here)
{
	if (here > 0 && here != id)
		put(d, " /* %d in strace's PID NS */", here);
}

static pid_t find_here(const struct decode *d, pid_t id, bool is_group)
{
	const struct kymo_syscall_target *target = d->target;

	return id > 0 && target->pid_here ? target->pid_here(target->context, id, is_group) : id;
}

void put_pid(struct decode *d, int pid)
{
	const struct kymo_syscall_target *target = d->target;
	const pid_t here = find_here(d, pid, false);
	char name[64];
	size_t n = 0;

	put(d, "%d", pid);
	if (here > 0 && target->pid_name)
		n = target->pid_name(target->context, here, name, sizeof(name));
	if (n) {
		puts_(d, "<");
		kymo_line_escape(d->text, name, n, "<>");
		puts_(d, ">");
	}
	put_id_here(d, pid, here);
}

void put_process_group(struct decode *d, int group)
{
	put(d, "%d", group);
	put_id_here(d, group, find_here(d, group, true));
}

/* ---- strings --------------------------------------------------------------------------------- */

/*
 * Up to `size` bytes from `address` on into `out`, a page at a time, because a string may end right before an unmapped
 * page; to its NUL, if `until_nul`. How many there are; `whole` tells that none is missing.
 */
static size_t read_string(struct decode *d, uint64_t address, char *out, size_t size, bool until_nul, bool *whole)
{
	size_t n = 0;

	*whole = true;
	while (n < size) {
		const size_t wanted = MIN(kymo_page_part(address + n, size - n), until_nul ? 256u : 4096u);
		const size_t got = d->target->read(d->target->context, address + n, out + n, wanted);
		const char *nul = until_nul ? memchr(out + n, '\0', MIN(got, wanted)) : NULL;

		if (nul)
			return (size_t)(nul - out);
		n += MIN(got, wanted);
		if (got < wanted) {
			*whole = false;
			return n;
		}
	}
	*whole = !until_nul;
	return n;
}

static void put_as_hex(struct decode *d, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(d, "\\x%02x", (unsigned char)bytes[i]);
}

static bool is_text(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(bytes[i] >= ' ' && bytes[i] < 0x7f) && !(bytes[i] && strchr("\t\n\v\f\r", bytes[i])))
			return false;
	return true;
}

/* By -x and -xx as hex. */
static void put_text(struct decode *d, const char *bytes, size_t n)
{
	const enum kymo_strings style = d->target->style.strings;

	if (style == KYMO_STRINGS_HEX || (style == KYMO_STRINGS_HEX_IF_BINARY && !is_text(bytes, n)))
		put_as_hex(d, bytes, n);
	else
		kymo_line_escape(d->text, bytes, n, NULL);
}

void put_path(struct decode *d, uint64_t address)
{
	char path[PATH_MAX + 1];
	bool whole;
	const size_t n = address ? read_string(d, address, path, PATH_MAX, true, &whole) : 0;

	if (!address || (!whole && n < PATH_MAX)) {
		put_address(d, address);
		return;
	}
	puts_(d, "\"");
	put_text(d, path, whole ? n : PATH_MAX - 1);
	puts_(d, whole ? "\"" : "\"...");
}

/* A string of at most `size` bytes, of which `string_size` are shown. */
static void put_cut(struct decode *d, uint64_t address, uint64_t size, bool until_nul, bool as_hex)
{
	const size_t shown = d->target->string_size;
	const size_t n_wanted = (size_t)MIN(size, until_nul ? shown + 1 : shown);
	kymo_cleanup_free char *bytes = address ? malloc(n_wanted + 1) : NULL;
	bool whole = false;
	size_t n;

	if (!bytes) {
		put_address(d, address);
		return;
	}
	n = read_string(d, address, bytes, n_wanted, until_nul, &whole);
	if (!whole && n < n_wanted) {
		put_address(d, address);
		return;
	}
	puts_(d, "\"");
	if (as_hex)
		put_as_hex(d, bytes, n);
	else
		put_text(d, bytes, MIN(n, shown));
	puts_(d, (until_nul ? !whole : size > shown) ? "\"..." : "\"");
}

void put_string(struct decode *d, uint64_t address)
{
	put_cut(d, address, UINT64_MAX, true, false);
}

void put_bytes(struct decode *d, uint64_t address, uint64_t size)
{
	put_cut(d, address, size, false, false);
}

void put_hex_bytes(struct decode *d, uint64_t address, uint64_t size)
{
	put_cut(d, address, size, false, true);
}

void put_quoted(struct decode *d, const char *bytes, size_t size)
{
	puts_(d, "\"");
	put_text(d, bytes, strnlen(bytes, size));
	puts_(d, "\"");
}

void put_struct_rest(struct decode *d, uint64_t address, size_t known, uint64_t size)
{
	put_struct_rest_after(d, ", ", address, known, size);
}

void put_struct_rest_after(struct decode *d, const char *before, uint64_t address, size_t known, uint64_t size)
{
	char bytes[REST_MAX];
	const size_t n = size - known;
	bool is_zero = true;

	if (size <= known || n > sizeof(bytes)) {
		put(d, "%s%s", size > known ? before : "", size > known ? "..." : "");
		return;
	}
	if (!fetch(d, address + known, bytes, n)) {
		put(d, "%s???", before);
		return;
	}
	for (size_t i = 0; i < n; i++)
		is_zero &= !bytes[i];
	if (is_zero)
		return;
	put(d, "%s/* bytes %zu..%" PRIu64 " */ ", before, known, size - 1);
	put_hex_bytes(d, address + known, n);
}

/* ---- kinds of many calls --------------------------------------------------------------------- */

PRINT(print_int)
{
	put(d, "%d", (int)ARG);
}
PRINT(print_pid)
{
	put_pid(d, (int)ARG);
}
PRINT(print_group)
{
	put_process_group(d, (int)ARG);
}
PRINT(print_uint)
{
	put(d, "%u", (unsigned)ARG);
}
PRINT(print_long)
{
	put(d, "%" PRId64, (int64_t)ARG);
}
PRINT(print_ulong)
{
	put(d, "%" PRIu64, ARG);
}
PRINT(print_hex)
{
	put(d, "%#" PRIx64, ARG);
}
PRINT(print_address)
{
	put_address(d, ARG);
}
PRINT(print_fd)
{
	put_fd(d, (int)ARG);
}
PRINT(print_dirfd)
{
	put_dirfd(d, (int)ARG);
}
PRINT(print_path)
{
	put_path(d, ARG);
}
PRINT(print_string)
{
	put_string(d, ARG);
}
PRINT(print_memfd_name)
{
	put_cut(d, ARG, MEMFD_NAME_SIZE, true, false);
}
PRINT(print_id)
{
	put_id(d, (unsigned)ARG);
}
PRINT(print_octal)
{
	put(d, "%#o", (unsigned)ARG);
}

PRINT(print_interrupted)
{
	put(d, "<... resuming interrupted %s ...>", d->call->interrupted ? d->call->interrupted : "system call");
}

PRINT(print_write_buffer)
{
	put_bytes(d, ARG, d->call->args[arg + 1]);
}

PRINT(print_read_buffer)
{
	if (call_failed(d))
		put_address(d, ARG);
	else /* recvfrom with MSG_TRUNC tells more than there is room for */
		put_bytes(d, ARG, MIN((uint64_t)d->call->result, d->call->args[arg + 1]));
}

PRINT(print_random_buffer)
{
	if (call_failed(d))
		put_address(d, ARG);
	else
		put_hex_bytes(d, ARG, (uint64_t)d->call->result);
}

PRINT(print_path_out)
{
	if (call_failed(d))
		put_address(d, ARG);
	else if (data)
		put_path(d, ARG);
	else
		put_bytes(d, ARG, (uint64_t)d->call->result);
}

PRINT(print_int_out)
{
	int value;

	if (fetch_or_put(d, ARG, &value, sizeof(value)))
		put(d, "[%d]", value);
}

PRINT(print_id_out)
{
	unsigned value;

	if (!fetch_or_put(d, ARG, &value, sizeof(value)))
		return;
	puts_(d, "[");
	put_id(d, value);
	puts_(d, "]");
}

PRINT(print_fd_pair)
{
	int fds[2];

	if (!fetch_or_put(d, ARG, fds, sizeof(fds)))
		return;
	puts_(d, "[");
	put_fd(d, fds[0]);
	puts_(d, ", ");
	put_fd(d, fds[1]);
	puts_(d, "]");
}

PRINT(print_offset)
{
	int64_t offset;

	if (fetch_or_put(d, ARG, &offset, sizeof(offset)))
		put(d, "[%" PRId64 "]", offset);
}

/* sendfile's: what it was, and what the call has made of it; both before the count. */
PRINT(print_sent_from)
{
	int64_t offset;

	if (fetch(d, ARG, &offset, sizeof(offset))) {
		put(d, "[%" PRIu64 "]", (uint64_t)offset);
		d->call->saved[0] = (uint64_t)offset;
		return;
	}
	put_address(d, ARG);
	put(d, ", %" PRIu64, d->call->args[arg + 1]);
	d->call->is_stopped = true;
}

PRINT(print_sent)
{
	int64_t offset;

	if (!call_failed(d) && fetch(d, d->call->args[arg - 1], &offset, sizeof(offset)) &&
	    (uint64_t)offset != d->call->saved[0])
		put(d, " => [%" PRIu64 "]", (uint64_t)offset);
	put(d, ", %" PRIu64, ARG);
}

static void put_one_id(struct decode *d, const void *bytes)
{
	unsigned id;

	memcpy(&id, bytes, sizeof(id));
	put_id(d, id);
}

PRINT(print_ids)
{
	const bool is_out = data != NULL;
	const int64_t n = is_out ? d->call->result : (int)d->call->args[0];

	if (n < 0 || n > NGROUPS_MAX || (is_out && n && !d->call->args[0]))
		put_address(d, ARG);
	else
		put_array(d, ARG, (uint64_t)n, sizeof(unsigned), put_one_id);
}

const struct kind k_int[1] = { { print_int, NULL, 0 } };
const struct kind k_pid[1] = { { print_pid, NULL, 0 } };
const struct kind k_group[1] = { { print_group, NULL, 0 } };
const struct kind k_uint[1] = { { print_uint, NULL, 0 } };
const struct kind k_long[1] = { { print_long, NULL, 0 } };
const struct kind k_ulong[1] = { { print_ulong, NULL, 0 } };
const struct kind k_hex[1] = { { print_hex, NULL, 0 } };
const struct kind k_address[1] = { { print_address, NULL, 0 } };
const struct kind k_fd[1] = { { print_fd, NULL, IS_FD } };
const struct kind k_dirfd[1] = { { print_dirfd, NULL, IS_FD } };
const struct kind k_path[1] = { { print_path, NULL, IS_PATH } };
const struct kind k_string[1] = { { print_string, NULL, 0 } };
const struct kind k_id[1] = { { print_id, NULL, 0 } };
const struct kind k_octal[1] = { { print_octal, NULL, 0 } };
const struct kind k_interrupted[1] = { { print_interrupted, NULL, 0 } };
const struct kind k_write_buffer[1] = { { print_write_buffer, NULL, 0 } };
const struct kind k_read_buffer[1] = { { print_read_buffer, NULL, AT_EXIT } };
const struct kind k_random_buffer[1] = { { print_random_buffer, NULL, AT_EXIT } };
const struct kind k_path_out[1] = { { print_path_out, NULL, AT_EXIT } };
const struct kind k_cwd_out[1] = { { print_path_out, "", AT_EXIT } };
const struct kind k_memfd_name[1] = { { print_memfd_name, NULL, 0 } };
const struct kind k_int_at[1] = { { print_int_out, NULL, 0 } };
const struct kind k_uint_out[1] = { { print_int_out, NULL, AT_EXIT } };
const struct kind k_int_out[1] = { { print_int_out, NULL, AT_EXIT } };
const struct kind k_id_out[1] = { { print_id_out, NULL, AT_EXIT } };
const struct kind k_fd_pair[1] = { { print_fd_pair, NULL, AT_EXIT } };
const struct kind k_offset_in[1] = { { print_offset, NULL, 0 } };
const struct kind k_sent_from[1] = { { print_sent_from, NULL, 0 } };
const struct kind k_sent[1] = { { print_sent, NULL, AT_EXIT | OWN_COMMA } };
const struct kind k_ids[1] = { { print_ids, NULL, 0 } };
const struct kind k_ids_out[1] = { { print_ids, "", AT_EXIT } };

/* ---- results --------------------------------------------------------------------------------- */

void result_hex(struct decode *d)
{
	put(d, "%#" PRIx64, (uint64_t)d->call->result);
}

void result_octal(struct decode *d)
{
	put_permissions(d, (unsigned)d->call->result);
}

void result_pid(struct decode *d)
{
	put_pid(d, (int)d->call->result);
}

void result_group(struct decode *d)
{
	put_process_group(d, (int)d->call->result);
}

void result_fd(struct decode *d)
{
	put_fd(d, (int)d->call->result);
}
