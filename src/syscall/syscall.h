/*
 * System calls by name and in sets, and as the text that strace prints of them.
 *
 * A call is decoded in two steps, as it is made and as it returns, because what the kernel writes can be read only
 *then:
 *
 *	kymo_syscall_enter()	"read(3, "
 *	kymo_syscall_leave()	"\"abc\", 4096)"
 *	kymo_syscall_result()	"3", "-1 EBADF (Bad file descriptor)", "0 (Timeout)"
 *
 * Nothing here knows how a call was seen. Registers come in a struct, memory through a function that may fail, and what
 * cannot be read is shown as its address. All that is read is bounded, whatever the caller of the system call says.
 */
#ifndef KYMO_SYSCALL_SYSCALL_H
#define KYMO_SYSCALL_SYSCALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"
#include "syscall/line.h"
#include "wire/copy.h"

/* ---- names and sets -------------------------------------------------------------------------- */

enum {
	KYMO_SYSCALL_MAX = 512,        /* numbers are below; those without a name are unknown */
	KYMO_SYSCALL_STRING_SIZE = 32, /* strace's own for -s */
	KYMO_SYSCALL_COPIED_MAX = 4096,
	KYMO_SYSCALL_NAME_SIZES = 32, /* messages of which the room for a name is kept until the call returns */
};

/* The kernel's name of a call, static; NULL where this table has none. */
const char *kymo_syscall_name(uint64_t number);

/* The same, or "syscall_0x1c3" in `buffer`. */
const char *kymo_syscall_name_or_number(uint64_t number, char buffer[32]);

/* The number that a 32-bit program's call has here: that of the same name, or one without a place in sets, which has a
 * name of its own. -1 is none, and stays. */
uint64_t kymo_syscall_from_i386(uint64_t number);

struct kymo_syscall_set {
	uint64_t bits[KYMO_SYSCALL_MAX / 64];
	bool has_unknown; /* numbers without a name are in it, too */
};

/*
 * Read a set: items with commas between them, each added to those before. A name, a number, a class (%file, %desc,
 * %process, %network, %signal, %ipc, %memory, %creds, %clock), "/REGEX" for the names that the POSIX extended
 * expression finds (it reaches to the end of the text, commas included), "all" or "none". "!" at the beginning inverts
 * the whole set; before a later item it takes that item out again. USAGE, with the names that are nearest; NO_MEMORY.
 */
struct kymo_error *kymo_syscall_set_parse(const char *text, struct kymo_syscall_set *ret);

bool kymo_syscall_set_has(const struct kymo_syscall_set *set, uint64_t number);

/* ---- injection ------------------------------------------------------------------------------- */

/* Something to be done to calls of a set, as strace's -e inject. */
struct kymo_syscall_injection {
	struct kymo_syscall_set set;
	bool has_result; /* the call is not made, and returns `result`; an error is a negative errno */
	int64_t result;
	int signal;                             /* to send when it is entered; or 0 */
	uint64_t delay_enter_ns, delay_exit_ns; /* 0: none */
	uint32_t first, last, step;             /* which ones: a thread counts its calls of each number from 1 on */
};

/*
 * Read SET[:error=ERRNO|:retval=N][:signal=SIG][:when=FIRST[..LAST][+[STEP]]][:delay_enter=TIME][:delay_exit=TIME];
 * times are in microseconds, or have a unit. USAGE, with the column; NO_MEMORY.
 */
struct kymo_error *kymo_syscall_injection_parse(const char *text, struct kymo_syscall_injection *ret);

/* Of the thread's `nth` call of a number. */
bool kymo_syscall_injection_is_due(const struct kymo_syscall_injection *injection, uint32_t nth);

/* ---- calls as text --------------------------------------------------------------------------- */

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
 * Lines, as strace makes them of the three: the end behind the arguments, "   = 3", in its column; of one whose result
 * nobody knows,
 * ")   = ?", which needs no kymo_syscall_leave(); and the beginning of a line that takes up what was left unfinished.
 */
void kymo_syscall_put_result(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			     struct kymo_line *text);
void kymo_syscall_put_no_result(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
				struct kymo_line *text);
void kymo_syscall_put_resumed(const struct kymo_syscall_call *call, struct kymo_line *text);

/*
 * Members of the JSON object that a call is, without what stands around them: "number": 0, "name": "read", "args":
 * ["3", …], of the text that the two steps have made; and what came back: , "result": 3, "error": …, "shown": …,
 * "duration_ns": …. `number` is as the program has it. Of a call whose result nobody knows, kymo_syscall_stop() takes
 * the place of kymo_syscall_leave(). The second needs room for a text: that of the first, which is over with; it says
 * whether memory was out (is_cut).
 */
void kymo_syscall_write_json(FILE *out, const struct kymo_syscall_call *call, uint64_t number,
			     const struct kymo_line *text);
void kymo_syscall_write_json_result(FILE *out, const struct kymo_syscall_call *call,
				    const struct kymo_syscall_target *target, uint64_t duration_ns,
				    struct kymo_line *text);
void kymo_syscall_stop(struct kymo_syscall_call *call, const struct kymo_line *text);

/* Nobody comes back from where it was made: exit, exit_group, rt_sigreturn. */
bool kymo_syscall_is_end(uint64_t number);

/* A program may see it return, with an error or without: execve does with an error only. */
bool kymo_syscall_can_return(uint64_t number, bool has_failed);

bool kymo_syscall_failed(const struct kymo_syscall_call *call);

/* "ENOENT" for 2, also the kernel's own ERESTARTSYS and its like; NULL for what has no name. */
const char *kymo_syscall_errno(int number);

/* The memory may be another one's when it returns: execve; or the registers: rt_sigreturn. */
bool kymo_syscall_replaces_memory(uint64_t number);

/* What kymo_syscall_enter(), or kymo_syscall_leave() and _result() read, for those who copy it meanwhile; how many.
 * Strings are shown up to `string_size`, which is at most KYMO_SYSCALL_COPIED_MAX. */
size_t kymo_syscall_copies(uint64_t number, bool is_leaving, size_t string_size, struct kymo_copy ret[KYMO_COPIES_MAX]);

/* The call's arguments name this path, or a descriptor of it: what -P asks for. */
bool kymo_syscall_touches(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			  const char *path);

/* "SIGCHLD", "SIGRT_3"; "SIGNAL 99" in `buffer` for none. */
const char *kymo_signal_name(int signal, char buffer[32]);

/* "{si_signo=SIGCHLD, si_code=CLD_EXITED, …}" of the kernel's siginfo_t, 128 bytes. */
void kymo_siginfo_text(const void *siginfo, const struct kymo_syscall_target *target, struct kymo_line *text);

#endif
