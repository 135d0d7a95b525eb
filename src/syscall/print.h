/* Pieces of text, memory of the target, and what many calls have as arguments. Private to the room. */
#ifndef KYMO_SYSCALL_PRINT_H
#define KYMO_SYSCALL_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "syscall/decode.h"

/* ---- pieces of text -------------------------------------------------------------------------- */

void put_pid(struct decode *d, int pid);              /* of a process or thread, with what -Y says */
void put_process_group(struct decode *d, int group);  /* of processes, likewise */
void put_address(struct decode *d, uint64_t address); /* "NULL", "0x…" */
void put_fd(struct decode *d, int fd);
void put_dirfd(struct decode *d, int fd);
void put_path(struct decode *d, uint64_t address);
void put_string(struct decode *d, uint64_t address);               /* up to its NUL, cut by -s */
void put_bytes(struct decode *d, uint64_t address, uint64_t size); /* as a string, cut by -s */
void put_hex_bytes(struct decode *d, uint64_t address, uint64_t size);
void put_quoted(struct decode *d, const char *bytes, size_t size); /* up to a NUL; of our own memory */
void put_permissions(struct decode *d, unsigned mode);             /* "0644" */
void put_device(struct decode *d, uint64_t device);
void put_id(struct decode *d, unsigned id); /* of a user or group: "-1" for none */

/* What stands after the `known` bytes of a structure of `size` bytes: nothing where it is all zero. */
void put_struct_rest(struct decode *d, uint64_t address, size_t known, uint64_t size);
void put_struct_rest_after(struct decode *d, const char *before, uint64_t address, size_t known, uint64_t size);

/* ---- memory of the target -------------------------------------------------------------------- */

/* All `size` bytes, or false. */
bool fetch(struct decode *d, uint64_t address, void *out, size_t size);

/* The same; where it fails, or the call has failed, the address is printed. */
bool fetch_or_put(struct decode *d, uint64_t address, void *out, size_t size);

bool call_failed(const struct decode *d);

/* Of an array: what -s says, and with -v all that an array may reasonably have. */
size_t shown_elements(const struct decode *d);

/* An array: "[", elements with ", " between, "...", "]". Elements are fetched one at a time into room for 128 bytes. */
void put_array(struct decode *d, uint64_t address, uint64_t n, size_t element_size,
	       void (*element)(struct decode *d, const void *bytes));

/* ---- results, and kinds of arguments ---------------------------------------------------------- */

void result_pid(struct decode *d);
void result_group(struct decode *d);
void result_hex(struct decode *d);
void result_octal(struct decode *d);
void result_fd(struct decode *d);

extern const struct kind k_int[1], k_pid[1], k_group[1], k_uint[1], k_long[1], k_ulong[1], k_hex[1], k_address[1],
	k_fd[1], k_dirfd[1];
extern const struct kind k_path[1], k_string[1], k_id[1], k_octal[1], k_interrupted[1], k_write_buffer[1],
	k_read_buffer[1], k_random_buffer[1];
extern const struct kind k_path_out[1], k_cwd_out[1], k_memfd_name[1], k_int_at[1], k_uint_out[1], k_int_out[1],
	k_id_out[1];
extern const struct kind k_fd_pair[1], k_offset_in[1], k_sent_from[1], k_sent[1], k_ids[1], k_ids_out[1];

#endif
