/* Futexes: operations, what each takes, and lists of robust ones. */
#include <inttypes.h>

#include "syscall/decode.h"
#include "syscall/print.h"
#include "syscall/process.h"
#include "syscall/time.h"

enum { PRIVATE = 128, REALTIME = 256 };

enum futex {
	WAIT,
	WAKE,
	FD,
	REQUEUE,
	CMP_REQUEUE,
	WAKE_OP,
	LOCK_PI,
	UNLOCK_PI,
	TRYLOCK_PI,
	WAIT_BITSET,
	WAKE_BITSET,
	WAIT_REQUEUE_PI,
	CMP_REQUEUE_PI,
	LOCK_PI2,
	N_FUTEX,
};

static const char *const futex_names[N_FUTEX] = { "WAIT",           "WAKE",        "FD",          "REQUEUE",
						  "CMP_REQUEUE",    "WAKE_OP",     "LOCK_PI",     "UNLOCK_PI",
						  "TRYLOCK_PI",     "WAIT_BITSET", "WAKE_BITSET", "WAIT_REQUEUE_PI",
						  "CMP_REQUEUE_PI", "LOCK_PI2" };

PRINT(print_futex_op)
{
	const unsigned op = (unsigned)ARG, command = op & ~(unsigned)(PRIVATE | REALTIME);
	const bool takes_clock = command == WAIT_BITSET || command == WAIT_REQUEUE_PI || command == LOCK_PI2;

	if (command >= N_FUTEX || (op & REALTIME && !takes_clock))
		put(d, "%#x /* FUTEX_??? */", op);
	else
		put(d, "FUTEX_%s%s%s", futex_names[command], op & PRIVATE ? "_PRIVATE" : "",
		    op & REALTIME ? "|FUTEX_CLOCK_REALTIME" : "");
}

/* Two operations in one number: what to do to the second word, and with what to compare it. */
static void put_wake_op(struct decode *d, unsigned value)
{
	static const char *const ops[] = { "SET", "ADD", "OR", "ANDN", "XOR" }, *const compares[] = {
		"EQ", "NE", "LT", "LE", "GT", "GE"
	};
	const unsigned op = value >> 28 & 7, compare = value >> 24 & 15;

	if (value >> 31)
		puts_(d, "FUTEX_OP_OPARG_SHIFT<<28|");
	if (op < kymo_countof(ops))
		put(d, "FUTEX_OP_%s", ops[op]);
	else
		put(d, "%#x /* FUTEX_OP_??? */", op);
	put(d, "<<28|%#x<<12|", value >> 12 & 0xfff);
	if (compare < kymo_countof(compares))
		put(d, "FUTEX_OP_CMP_%s", compares[compare]);
	else
		put(d, "%#x /* FUTEX_OP_CMP_??? */", compare);
	put(d, "<<24|%#x", value & 0xfff);
}

static void put_bitset(struct decode *d, unsigned bits)
{
	if (bits == ~0u)
		puts_(d, "FUTEX_BITSET_MATCH_ANY");
	else
		put(d, "%#x", bits);
}

PRINT(print_futex_args)
{
	const uint64_t *a = d->call->args;
	const unsigned command = (unsigned)a[1] & ~(unsigned)(PRIVATE | REALTIME);

	if (command == UNLOCK_PI || command == TRYLOCK_PI)
		return;
	puts_(d, ", ");
	if (command == LOCK_PI || command == LOCK_PI2) {
		put_timespec_at(d, a[3]);
		return;
	}
	put(d, "%u", (unsigned)a[2]);
	switch (command) {
	case WAIT:
	case WAIT_BITSET:
	case WAIT_REQUEUE_PI:
		puts_(d, ", ");
		put_timespec_at(d, a[3]);
		if (command == WAIT)
			return;
		puts_(d, ", ");
		if (command == WAIT_BITSET)
			put_bitset(d, (unsigned)a[5]);
		else
			put_address(d, a[4]);
		return;
	case WAKE:
	case FD:
		return;
	case WAKE_BITSET:
		puts_(d, ", ");
		put_bitset(d, (unsigned)a[5]);
		return;
	case REQUEUE:
	case CMP_REQUEUE:
	case CMP_REQUEUE_PI:
	case WAKE_OP:
		put(d, ", %u, ", (unsigned)a[3]);
		put_address(d, a[4]);
		if (command == REQUEUE)
			return;
		puts_(d, ", ");
		if (command == WAKE_OP)
			put_wake_op(d, (unsigned)a[5]);
		else
			put(d, "%u", (unsigned)a[5]);
		return;
	default:
		put(d, ", %#" PRIx64 ", ", a[3]);
		put_address(d, a[4]);
		put(d, ", %#" PRIx64, a[5]);
	}
}

PRINT(print_robust_list)
{
	uint64_t value;

	if (!fetch_or_put(d, ARG, &value, sizeof(value)))
		return;
	puts_(d, "[");
	if (data)
		put(d, "%" PRIu64, value);
	else
		put_address(d, value);
	puts_(d, "]");
}

const struct kind k_futex_op[1] = { { print_futex_op, NULL, 0 } };
const struct kind k_futex_args[1] = { { print_futex_args, NULL, OWN_COMMA } };
const struct kind k_robust_out[1] = { { print_robust_list, NULL, AT_EXIT } };
const struct kind k_robust_size_out[1] = { { print_robust_list, "", AT_EXIT } };
