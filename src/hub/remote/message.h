/*
 * What a hub and those that are connected to it say to each other (docs/internals/engines.md).
 *
 * Each connection is two sockets, which keep messages whole. On the first, the client asks and the hub replies. On the
 * second the hub asks, which is an event or the release of an engine, and the client answers; what the client asks for
 * in a callback goes there too, in between, as the hub's thread waits for nothing else then.
 *
 * Both sides run on one machine, possibly from different builds. So the version covers this header and the structures
 * of engine.h. Nothing that comes is believed: whatever passes hub_message_check() has values that its types allow, and
 * no pointer is among them.
 */
#ifndef KYMO_HUB_REMOTE_MESSAGE_H
#define KYMO_HUB_REMOTE_MESSAGE_H

#include "kymo/engine.h"
#include "hub/thread/tracee.h"

#define HUB_VERSION 5
#define HUB_DATA_MAX 32768u /* bytes of memory in a message */
#define HUB_ANSWER_MS KYMO_ANSWER_MS

enum hub_message_type {
	/* A client asks. */
	HUB_HELLO = 1,      /* the reply brings the second socket */
	HUB_BYE,            /* let go of everything */
	HUB_ATTACH,         /* CREATE: `engine` is its name from then on; a lookup is told one in the reply */
	HUB_ATTACH_PROCESS, /* `engine` and the numbers after it are their names; the result is how many */
	HUB_DETACH_ALL,     /* the result is how many */
	HUB_SET_EVENTS,
	HUB_CONTROL,
	HUB_BARRIER, /* -EAGAIN: not yet */
	HUB_WHERE,
	HUB_PREPARE,
	HUB_FINISH,
	HUB_GET_REGISTERS,
	HUB_SET_REGISTERS,
	HUB_SET_SYSCALL,
	HUB_SET_RESULT,
	HUB_READ,
	HUB_WRITE,
	HUB_INJECT,
	/* … of a process that is to be frozen, as joined.h says: */
	/* `tid` is the process; -EBUSY: another owner has it frozen; -ETIMEDOUT: `tid` did not stop; -EAGAIN: an engine
	 * stops it; -ENOENT: it is not traced here. Ends with the connection */
	HUB_FREEZE,
	HUB_HELD,               /* the reply brings those from number `word` on, and zeroes after the last one */
	HUB_FREEZE_SET,         /* registers of thread `tid`, as in the following */
	HUB_FREEZE_XSTATE,      /* `word` of the reply is its size */
	HUB_FREEZE_BEGIN_CALLS, /* `registers` for calls; signals are blocked */
	HUB_FREEZE_CALL,        /* and the reply has those after the call */
	HUB_FREEZE_END_CALLS,   /* its own registers and mask again */
	HUB_FREEZE_WRITE,       /* to `word` */
	HUB_INSERT,
	HUB_REMOVE,
	HUB_HIT_AGAIN,
	HUB_WATCH,
	HUB_UNWATCH,
	HUB_SET_SIGNAL, /* `word`, with `info` */
	HUB_GET_XSTATE, /* `word` of the reply is how many bytes there are */
	HUB_SET_XSTATE,
	HUB_RUN,  /* be asked to RUN_NOW between two events; the reply comes after that. -EDEADLK: in a callback */
	HUB_LIST, /* of `tid`, from number `word` on; the memory of the reply has engines, `word` is how many there are
		   */
	/* The hub asks. The result is what the callback answers. */
	HUB_QUIESCE,
	HUB_SIGNAL,
	HUB_CLONE,
	HUB_JCTL,
	HUB_EXEC,
	HUB_SYSCALL_ENTRY,
	HUB_SYSCALL_EXIT,
	HUB_EXIT,
	HUB_DEATH,
	HUB_REAP,
	HUB_GONE,    /* nothing comes of this engine any more */
	HUB_PROVE,   /* process `tid` has executed something: the reply has a proof again */
	HUB_RUN_NOW, /* do what RUN was sent for; calls are made as in a callback */
	HUB_N_TYPES,
};

#define HUB_FREEZE_FIRST \
	1u /* HOLD: the first thread, and thread `word` of the process, which may be the same or 0; no others */
#define HUB_CALL_AS_IS 1u /* HOLD_CALL: from where it is, with the registers that it has */
#define HUB_CALL_BATCH \
	2u /* HOLD_CALL: several calls, until it is at `word` before signal `event`, which is not blocked meanwhile; \
	      for the hub's own process alone */

/* A stopped thread. */
struct hub_held {
	int32_t tid;
	int32_t stop_signal; /* of a group stop that it is in; else 0 */
	struct kymo_tracee_facts facts;
	struct user_regs_struct registers;
};
#define HUB_HELD_MAX (HUB_DATA_MAX / sizeof(struct hub_held))

enum hub_side { HUB_CLIENT, HUB_ITSELF };

struct hub_message {
	uint16_t version;
	uint8_t type; /* enum hub_message_type */
	uint8_t is_reply;
	uint32_t serial;        /* of the asking side; the reply has the same */
	uint64_t engine;        /* name of one */
	int64_t result;         /* of a reply: a negative errno, or what the call gives */
	int32_t tid, pid;       /* of a thread: what is told is about, WHERE's reply; what ATTACH is asked for */
	uint32_t action;        /* enum kymo_action: so far, of a callback; CONTROL; WATCH: enum kymo_watch */
	uint32_t event;         /* of QUIESCE; HOLD_CALL: a signal */
	uint32_t flags, events; /* ATTACH, ATTACH_PROCESS, SET_EVENTS, HOLD, HOLD_CALL; WATCH: flags is how many bytes;
				   of what the hub asks: 1, there are breakpoints in the memory */
	uint64_t ops, data;     /* what these match: numbers that mean something to the client alone */
	uint64_t word; /* HOLD: a thread; HOLD_CALL: where a batch ends; PREPARE, FINISH: the stop; SET_RESULT: that;
			  READ, WRITE, HOLD_WRITE, INSERT, REMOVE, WATCH: the address; UNWATCH, WATCH's reply: the slot
			*/
	uint64_t size; /* of the memory that is asked for, or follows */
	union {
		struct user_regs_struct registers;
		struct {
			uint64_t number, args[6];
		} call;
		siginfo_t info;                   /* INJECT */
		struct kymo_signal_report signal; /* both ways */
		struct kymo_syscall_report syscall;
		struct kymo_clone_report clone;
		struct kymo_exec_report exec;
		struct kymo_jctl_report jctl;
		int32_t status; /* EXIT, DEATH */
		struct kymo_reap_report reap;
	};
};

/* Whether `from` may send this message, of `size` bytes with the memory after it. 0 or -EPROTO. */
int hub_message_check(const struct hub_message *message, size_t size, enum hub_side from);

/* Whether a request of that type, or a reply whose result is 0, has `size` bytes of memory behind it. */
bool hub_message_takes_memory(unsigned int type);
bool hub_message_brings_memory(unsigned int type);

/* Send one, with `message->size` bytes of memory where its type has such. Does not wait: -EAGAIN says that the other
 * one does not read. -EPIPE: there is no client. */
int hub_send(int socket, const struct hub_message *message, const void *memory);

/*
 * Wait for a message until `deadline_ns` of kymo_now_ns() (0: for ever). `memory` has room for HUB_DATA_MAX; NULL: none
 * is expected. `fd_ret` is the descriptor that came with the message, or -1; NULL: none may come. -ETIMEDOUT, -EPIPE,
 * -EPROTO.
 */
int hub_receive(int socket, enum hub_side from, uint64_t deadline_ns, struct hub_message *message, void *memory,
		int *fd_ret);

/* Whether this is a request with which its client has to prove that it may trace `tid` (remote/proof.h). */
bool hub_message_needs_proof(const struct hub_message *message);

/* Send one with a descriptor. */
int hub_send_fd(int socket, const struct hub_message *message, int fd);

#endif
