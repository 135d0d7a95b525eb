/* Filters of packets and of calls: each class of instructions, offsets, verdicts, and what is no code. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sock_filter codes[512], verdicts[16];

/* strace has names of extended BPF for some codes that classic BPF does not have. */
static int is_classic(unsigned code)
{
	switch (BPF_CLASS(code)) {
	case BPF_LD:
	case BPF_LDX:
		return BPF_SIZE(code) != 0x18 && BPF_MODE(code) <= BPF_MSH;
	case BPF_ALU:
		return BPF_OP(code) <= BPF_XOR;
	case BPF_JMP:
		return BPF_OP(code) <= BPF_JSET;
	default:
		return 1;
	}
}

static void attach(int fd, const void *filter, unsigned short n)
{
	const struct sock_fprog program = { n, (struct sock_filter *)filter };

	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG | 0x40,
		&program);
}

int main(void)
{
	struct seccomp_notif_sizes sizes;
	static const uint32_t actions[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
					    SECCOMP_RET_ERRNO | 22,   SECCOMP_RET_USER_NOTIF,  SECCOMP_RET_TRACE | 7,
					    SECCOMP_RET_LOG,          SECCOMP_RET_ALLOW,       0x12340000 };
	const struct sock_filter loads[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SKF_LL_OFF + 4),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, SKF_NET_OFF + 8),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_CPU),
		BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 100, 0, 1),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
	};
	/* strace leaves bits above the first eight out in the other classes; kymo shows them in all. */
	static const unsigned short shown_above[] = {
		[BPF_ST] = 0x100, [BPF_STX] = 0x100, [BPF_RET] = 0x100, [BPF_MISC] = 0x100
	};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct sock_filter got[8];
	socklen_t n = 8;

	attach(fd, loads, sizeof(loads) / sizeof(*loads));
	getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, got, &n);
	for (unsigned code = 0; code < 256; code++) {
		if (!is_classic(code))
			continue;
		codes[2 * code] = (struct sock_filter){ code, 0, 0, code << 16 };
		codes[2 * code + 1] = (struct sock_filter){ code | shown_above[code & 7], 1, code, code };
	}
	attach(-1, codes, 512);
	for (unsigned i = 0; i < sizeof(actions) / sizeof(*actions); i++) {
		verdicts[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, actions[i]);
		syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[i]);
	}
	attach(-1, verdicts, sizeof(actions) / sizeof(*actions) + 1); /* the last is no return, so none is taken */
	attach(-1, NULL, 3);
	syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 1, NULL);
	/* Of the operation the kernel looks at 32 bits. */
	syscall(SYS_seccomp, 1ul << 32 | SECCOMP_GET_ACTION_AVAIL, 0, &actions[0]);
	syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
	syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 1, &sizes);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL);
	return 0;
}
