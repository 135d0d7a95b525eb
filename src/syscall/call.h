/*
 * System calls as the text that strace prints of them.
 *
 * A call is decoded in two steps, as it is made and as it returns, because what the kernel writes can be read only
 * then:
 *
 *	kymo_syscall_enter()	"read(3, "
 *	kymo_syscall_leave()	"\"abc\", 4096)"
 *	kymo_syscall_result()	"3", "-1 EBADF (Bad file descriptor)", "0 (Timeout)"
 *
 * Nothing here knows how a call was seen. Registers come in a struct, memory through a function that may fail, and what
 * cannot be read is shown as its address. All that is read is bounded, whatever the caller of the system call says.
 */
#ifndef KYMO_SYSCALL_CALL_H
#define KYMO_SYSCALL_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "syscall/names.h"

struct kymo_line;

enum {
	KYMO_SYSCALL_STRING_SIZE = 32, /* strace's own for -s */
	KYMO_SYSCALL_NAME_SIZES = 32,  /* messages of which the room for a name is kept until the call returns */
};

/* How values are written. All zero but for the column: as strace does where it is not told otherwise. */
enum kymo_constants {
	KYMO_CONSTANTS_NAMES,   /* O_RDONLY|O_CLOEXEC */
	KYMO_CONSTANTS_NUMBERS, /* 0x80000 */
	KYMO_CONSTANTS_BOTH,    /* 0x80000, and the names as a comment */
};

enum kymo_strings {
	KYMO_STRINGS_AS_TEXT,
	KYMO_STRINGS_HEX_IF_BINARY, /* those that have bytes which are no text */
	KYMO_STRINGS_HEX,
};

enum { KYMO_SYSCALL_COLUMN = 40 }; /* strace's own for -a */

struct kymo_syscall_style {
	unsigned int column; /* where results begin */
	enum kymo_constants constants;
	enum kymo_strings strings;
};

/* The process that makes the call. All functions are called from within the three below only. */
struct kymo_syscall_target {
	void *context; /* handed to the functions */

	/* Copy up to `size` bytes; how many came, from the first on. 0: none can be read there. */
	size_t (*read)(void *context, uint64_t address, void *out, size_t size);

	/* What a descriptor leads to, or the working directory for AT_FDCWD, as the link in procfs has it: its length,
	 * cut to `size`; 0 where there is none. NULL: descriptors are shown as numbers alone. */
	size_t (*fd_path)(void *context, int fd, char *out, size_t size);

	/* Write more of a descriptor than its link, the `n` bytes (and a NUL) at `link`, with "<" and ">" around it;
	 * false: nothing was written, and the link is to be shown. NULL: links are shown. */
	bool (*put_fd)(void *context, int fd, const char *link, size_t n, struct kymo_line *text);

	/* The name of a process or thread, by its id as this process has it: its length, 0 where there is none. NULL:
	 * none is shown. */
	size_t (*pid_name)(void *context, pid_t pid, char *out, size_t size);

	/* The id that this process has for what the one that calls has `pid` for, in its own PID namespace: a process
	 * or thread, or a group of processes. `pid` where they are in the same, 0: unknown. NULL: is not shown. */
	pid_t (*pid_here)(void *context, pid_t pid, bool is_group);

	size_t string_size; /* at most so many bytes of a string and elements of an array */
	struct kymo_syscall_style style;
	bool is_whole; /* structures are shown with all of their members */
	bool is_raw;   /* arguments are numbers in hex */
};

struct kymo_syscall_call {
	uint64_t number, args[6];
	uint64_t stack_pointer;  /* at the entry; rt_sigreturn has its mask there */
	const char *interrupted; /* of restart_syscall: the name of the call that is made again; NULL: unknown */
	bool is_i386;            /* `number` is of kymo_syscall_from_i386() */
	int64_t result;          /* as the kernel has it: -4095 … -1 are errors. Set before kymo_syscall_leave() */

	/* Where arguments begin in the text, relative to the end of "name(", and how many there are;
	 * kymo_syscall_leave() has completed them. An argument ends where the next begins, less ", ". */
	unsigned arg_at[8], n_args;

	/* The decoder's own between entry and exit. */
	unsigned next, base;
	bool is_stopped, is_raw;
	uint64_t saved[2];
	int32_t name_sizes[KYMO_SYSCALL_NAME_SIZES]; /* of recvmmsg */
};

/* Begin with a call whose number, arguments and stack pointer are set. */
void kymo_syscall_enter(struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			struct kymo_line *text);

/* The arguments that were left out, and ")". `text` need not be the one that the beginning went to; then `arg_at` means
 * nothing. */
void kymo_syscall_leave(struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			struct kymo_line *text);

/* What came back, without "= ". */
void kymo_syscall_result(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			 struct kymo_line *text);

/* The beginning has shown all arguments. */
bool kymo_syscall_is_complete(const struct kymo_syscall_call *call);

/*
 * Lines, as strace makes them of the three: the end after the arguments, "   = 3", in its column; of a call whose
 * result is not known, ")   = ?", which needs no kymo_syscall_leave(); and the beginning of a line that takes up what
 * was left unfinished.
 */
void kymo_syscall_put_result(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			     struct kymo_line *text);
void kymo_syscall_put_no_result(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
				struct kymo_line *text);
void kymo_syscall_put_resumed(const struct kymo_syscall_call *call, struct kymo_line *text);

/* It does not return: exit, exit_group, rt_sigreturn. */
bool kymo_syscall_is_end(uint64_t number);

/* A program may see it return, with an error or without: execve does with an error only. */
bool kymo_syscall_can_return(uint64_t number, bool has_failed);

/* The memory may be another one's when it returns: execve; or the registers: rt_sigreturn. */
bool kymo_syscall_replaces_memory(uint64_t number);

#endif
