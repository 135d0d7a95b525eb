/*
 * Programs of classic BPF, which sockets and seccomp have as filters, as the macros of <linux/filter.h> write them.
 * They are long, and shown with -v alone.
 */
#include "syscall/packet_filter.h"

#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

#include "syscall/constants.h"
#include "syscall/print.h"

/* clang-format off */
NAMES(classes, "BPF_???", NAME(BPF_LD), NAME(BPF_LDX), NAME(BPF_ST), NAME(BPF_STX), NAME(BPF_ALU), NAME(BPF_JMP),
      NAME(BPF_RET), NAME(BPF_MISC));
NAMES(sizes, "BPF_???", NAME(BPF_W), NAME(BPF_H), NAME(BPF_B));
NAMES(modes, "BPF_???", NAME(BPF_IMM), NAME(BPF_ABS), NAME(BPF_IND), NAME(BPF_MEM), NAME(BPF_LEN), NAME(BPF_MSH));
NAMES(sources, "BPF_???", NAME(BPF_K), NAME(BPF_X));
NAMES(results, "BPF_???", NAME(BPF_K), NAME(BPF_X), NAME(BPF_A));
NAMES(arithmetic, "BPF_???", NAME(BPF_ADD), NAME(BPF_SUB), NAME(BPF_MUL), NAME(BPF_DIV), NAME(BPF_OR), NAME(BPF_AND),
      NAME(BPF_LSH), NAME(BPF_RSH), NAME(BPF_NEG), NAME(BPF_MOD), NAME(BPF_XOR));
NAMES(jumps, "BPF_???", NAME(BPF_JA), NAME(BPF_JEQ), NAME(BPF_JGT), NAME(BPF_JGE), NAME(BPF_JSET));
NAMES(moves, "BPF_???", NAME(BPF_TAX), NAME(BPF_TXA));
NAMES(ancillary, "SKF_AD_???", NAME(SKF_AD_PROTOCOL), NAME(SKF_AD_PKTTYPE), NAME(SKF_AD_IFINDEX), NAME(SKF_AD_NLATTR),
      NAME(SKF_AD_NLATTR_NEST), NAME(SKF_AD_MARK), NAME(SKF_AD_QUEUE), NAME(SKF_AD_HATYPE), NAME(SKF_AD_RXHASH),
      NAME(SKF_AD_CPU), NAME(SKF_AD_ALU_XOR_X), NAME(SKF_AD_VLAN_TAG), NAME(SKF_AD_VLAN_TAG_PRESENT),
      NAME(SKF_AD_PAY_OFFSET), NAME(SKF_AD_RANDOM), NAME(SKF_AD_VLAN_TPID));
NAMES(verdicts, "SECCOMP_RET_???", NAME(SECCOMP_RET_KILL_PROCESS), NAME(SECCOMP_RET_KILL_THREAD),
      NAME(SECCOMP_RET_TRAP), NAME(SECCOMP_RET_ERRNO), NAME(SECCOMP_RET_USER_NOTIF), NAME(SECCOMP_RET_TRACE),
      NAME(SECCOMP_RET_LOG), NAME(SECCOMP_RET_ALLOW));
/* clang-format on */

static void put_named_bits(struct decode *d, const struct names *names, unsigned value)
{
	puts_(d, "|");
	put_name(d, names, value);
}

static void put_code(struct decode *d, unsigned code)
{
	const unsigned class = BPF_CLASS(code);
	unsigned known = 0xff; /* bits that have a meaning */

	put_name(d, &classes, class);
	switch (class) {
	case BPF_LD:
	case BPF_LDX:
		put_named_bits(d, &sizes, BPF_SIZE(code));
		put_named_bits(d, &modes, BPF_MODE(code));
		break;
	case BPF_ALU:
	case BPF_JMP:
		put_named_bits(d, &sources, BPF_SRC(code));
		put_named_bits(d, class == BPF_ALU ? &arithmetic : &jumps, BPF_OP(code));
		break;
	case BPF_RET:
		put_named_bits(d, &results, BPF_RVAL(code));
		known = 0x1f;
		break;
	case BPF_MISC:
		put_named_bits(d, &moves, BPF_MISCOP(code));
		break;
	default:
		known = 0x7;
	}
	if (code & ~known)
		put(d, "|%#x /* BPF_??? */", code & ~known);
}

/* Loads of a socket's filter have offsets from the link's header, the network's, and of what is no part of a packet. */
static void put_offset(struct decode *d, uint32_t k)
{
	if (k >= (uint32_t)SKF_AD_OFF) {
		put_hex_constant(d, "SKF_AD_OFF", (uint32_t)SKF_AD_OFF);
		puts_(d, "+");
		put_name(d, &ancillary, k - (uint32_t)SKF_AD_OFF);
	} else if (k >= (uint32_t)SKF_NET_OFF) {
		put_hex_constant(d, "SKF_NET_OFF", (uint32_t)SKF_NET_OFF);
		put(d, "+%u", k - (uint32_t)SKF_NET_OFF);
	} else if (k >= (uint32_t)SKF_LL_OFF) {
		put_hex_constant(d, "SKF_LL_OFF", (uint32_t)SKF_LL_OFF);
		put(d, "+%u", k - (uint32_t)SKF_LL_OFF);
	} else {
		put(d, "%#x", k);
	}
}

static void put_verdict(struct decode *d, uint32_t k)
{
	put_name(d, &verdicts, k & SECCOMP_RET_ACTION_FULL);
	if (k & SECCOMP_RET_DATA)
		put(d, "|%#x", k & SECCOMP_RET_DATA);
}

static bool is_filter_jump(const struct sock_filter *filter)
{
	return filter->jt || filter->jf;
}

static void put_instruction(struct decode *d, const struct sock_filter *filter,
			    void (*put_k)(struct decode *d, const struct sock_filter *filter))
{
	puts_(d, is_filter_jump(filter) ? "BPF_JUMP(" : "BPF_STMT(");
	put_code(d, filter->code);
	puts_(d, ", ");
	put_k(d, filter);
	if (is_filter_jump(filter))
		put(d, ", %#x, %#x", filter->jt, filter->jf);
	puts_(d, ")");
}

static void put_socket_k(struct decode *d, const struct sock_filter *filter)
{
	if (BPF_CLASS(filter->code) == BPF_LD)
		put_offset(d, filter->k);
	else
		put(d, "%#x", filter->k);
}

static void put_seccomp_k(struct decode *d, const struct sock_filter *filter)
{
	if (BPF_CLASS(filter->code) == BPF_RET && !is_filter_jump(filter))
		put_verdict(d, filter->k);
	else
		put(d, "%#x", filter->k);
}

static void put_socket_instruction(struct decode *d, const void *bytes)
{
	put_instruction(d, bytes, put_socket_k);
}

static void put_seccomp_instruction(struct decode *d, const void *bytes)
{
	put_instruction(d, bytes, put_seccomp_k);
}

static void put_filter(struct decode *d, uint64_t address, uint64_t n,
		       void (*instruction)(struct decode *d, const void *bytes))
{
	if (!d->target->is_whole || n > BPF_MAXINSNS)
		put_address(d, address);
	else
		put_array(d, address, n, sizeof(struct sock_filter), instruction);
}

static void put_program(struct decode *d, const struct sock_fprog *program,
			void (*instruction)(struct decode *d, const void *bytes))
{
	put(d, "{len=%u, filter=", program->len);
	put_filter(d, (uintptr_t)program->filter, program->len, instruction);
	puts_(d, "}");
}

void put_socket_filter(struct decode *d, uint64_t address, uint64_t n)
{
	put_filter(d, address, n, put_socket_instruction);
}

void put_socket_program(struct decode *d, const void *program)
{
	put_program(d, program, put_socket_instruction);
}

void put_seccomp_program_at(struct decode *d, uint64_t address)
{
	struct sock_fprog program;

	if (fetch(d, address, &program, sizeof(program)))
		put_program(d, &program, put_seccomp_instruction);
	else
		put_address(d, address);
}

void put_seccomp_action_at(struct decode *d, uint64_t address)
{
	uint32_t action;

	if (!fetch_or_put(d, address, &action, sizeof(action)))
		return;
	puts_(d, "[");
	put_name(d, &verdicts, action);
	puts_(d, "]");
}
