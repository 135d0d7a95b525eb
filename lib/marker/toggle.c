/*
 * How a NOP becomes a jump, and a NOP again, while any number of threads run through it.
 *
 * No thread is stopped, there is no signal handler and no int3, and no page becomes writable: the bytes are written
 * through /proc/self/mem, as a debugger would. The kernel gives this process a page of its own the first time (the file
 * is mapped privately); threads find either page with the same bytes, and the write is done when the call returns.
 *
 *	off	0f 1f 44 00 00	nopl 0(%rax,%rax,1)
 *	between	a9 xx xx xx xx	test $imm32, %eax
 *	on	e9 rr rr rr rr	jmp cold
 *
 * On:	1. one byte, 0f to a9
 *	2. synchronize all threads
 *	3. four bytes, the immediate becomes the jump's distance
 *	4. synchronize
 *	5. one byte, a9 to e9
 *	6. synchronize
 * Off is 5 to 1 backwards: e9 to a9, synchronize, 1f 44 00 00, synchronize, a9 to 0f, synchronize. "Synchronize" is
 * membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE): when it returns each running thread of the process has
 * executed a core serializing instruction. Each other thread will do so before it runs again (membarrier(2); the
 * kernel's Documentation/features/sched/membarrier-sync-core). The calling thread executes one itself: of the calling
 * thread's core membarrier(2) promises nothing, nor does it do anything where there is one thread.
 *
 * Why this is right:
 *
 *  (a)	All three are five bytes long. Whichever a thread has fetched, decoded or keeps in a trace or micro-operation
 *	cache, the next instruction begins at the same address. No thread is ever in the middle of a site, as none is
 *	when it is interrupted: its program counter is before or after it.
 *  (b)	`test` changes flags alone, and the site's asm goto says that flags are changed. So "between" is a NOP, whatever
 *	its immediate is: old bytes, new bytes, or any mixture of both. A fetch may see that while step 3's bytes
 *	arrive, also if they lie in two cache lines or pages.
 *  (c)	What a thread can execute between two synchronizations differs in the first byte alone (steps 1, 5) or in bytes
 *	that don't matter (step 3). Old instructions never meet bytes that were written two steps later: after step 2 no
 *	core has the NOP any more when its tail is overwritten. After step 4 no core can fetch e9 together with bytes
 *	from before the distance.
 *  (d)	A write of one byte is atomic for fetches: they see the byte before or after it. So at steps 1 and 5 a thread
 *	executes one of two whole instructions.
 *
 * What the processors' makers promise. AMD (APM vol. 2, chapter 7, on cross-modifying code): stores to code that
 * another core executes are coherent; where all changed bytes lie in one aligned quadword it executes the old or the
 * new instruction without further ado, as one byte always does. Intel (SDM vol. 3, "Handling Self- and Cross-Modifying
 * Code") wants the other core kept away and serialized. Specification updates list an erratum: code that is changed
 * without that ("unsynchronized XMC") may be executed in unexpected ways. They make no exception for single bytes. So
 * on Intel steps 1 and 5 rest on the practice that all kernels and debuggers rest on: the first byte of an instruction
 * that others execute is replaced (int3), then cores are synchronized, the other bytes written, synchronized, the first
 * byte. Linux changes jump labels, static calls and ftrace sites so, all the time, on all machines
 * (text_poke_bp_batch() in arch/x86/kernel/alternative.c). The sequence here is that one, with the same
 * synchronizations. The difference is what stands there in between: a9 in place of cc, executed and not trapped. To
 * execute cc no other byte is needed, for a9 four are; (b) is why they need not be right, and (a) why the length is
 * never in doubt. What this adds to the practice is that a core may join one new byte with four old ones in a fetch;
 * both are whole instructions of the same length then. tests/targets/markers/storm.c is the experiment: it counts what
 * goes wrong, and has not found any.
 *
 * What else writes to a site: `kymo record` from outside, with all threads stopped, which looks at the gate's `busy`
 * (update.c). Debuggers and the kernel's uprobes put cc there. So bytes are looked at before each step, and where they
 * are none of the three forms the site is left as it is. A breakpoint that comes between the look and the write is
 * lost, or its owner writes back what it had found: a debugger gets what it stopped. A uprobe that comes while the site
 * is on, and goes, leaves the file's first byte or all five there; nothing that runs in this process can prevent that
 * (docs/internals/markers.md).
 *
 * When something fails in the middle (a write, which the one before could do) sites stay "between". That is a NOP, and
 * the next toggle goes on from there.
 */
#include "toggle.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#define SIZE 5

static const unsigned char NOP[SIZE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

enum {
	TEST = 0xa9,
	JUMP = 0xe9,
	INT3 = 0xcc,
	CALL = 0xe8, /* newer kernels make their uprobes one */
};

/* What stands at a site. */
enum form {
	FORM_OFF,
	FORM_BETWEEN,
	FORM_ON,
	FORM_BREAKPOINT,
	FORM_UNKNOWN,
};

static bool is_registered;

/* ---- synchronizing --------------------------------------------------------------------------- */

static int membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0) < 0 ? -errno : 0;
}

/* As /proc has it; false where there is none. A directory's link count is 2 and one for each directory in it. */
static bool has_one_thread(void)
{
	struct stat threads;

	return stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 3;
}

/* Before anything is changed. -EPERM. */
static int prepare_to_synchronize(void)
{
	if (!is_registered)
		is_registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) == 0;
	return is_registered || has_one_thread() ? 0 : -EPERM;
}

/*
 * A serializing instruction for this core: IRET to what follows, as the kernel has it in its sync_core(). IRET and
 * CPUID are what both makers call serializing and do not restrict to the kernel (Intel SDM vol. 3, AMD APM vol. 2:
 * "Serializing Instructions"). CPUID leaves a virtual machine, which takes longer than all else of a batch with one
 * site. With a shadow stack IRET would want a frame there, too.
 */
static void serialize(void)
{
#if defined(__x86_64__) && defined(__LP64__)
	unsigned long shadow = 0, stack, word;

	/* rdsspq %rax, a NOP where there is no shadow stack. */
	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(shadow));
	if (!shadow) {
		__asm__ volatile("mov %%rsp, %0\n\t"
				 "sub $128, %%rsp\n\t" /* the red zone */
				 "mov %%ss, %k1\n\t"
				 "push %1\n\t"
				 "push %0\n\t"
				 "pushfq\n\t"
				 "mov %%cs, %k1\n\t"
				 "push %1\n\t"
				 "lea 1f(%%rip), %1\n\t"
				 "push %1\n\t"
				 "iretq\n"
				 "1:"
				 : "=&r"(stack), "=&r"(word)
				 :
				 : "memory", "cc");
		return;
	}
#endif
	unsigned int a, b, c, d;
	__cpuid(0, a, b, c, d);
}

static int synchronize(void)
{
	int status = 0;

	/* The kernel may be out of memory for a moment. */
	for (int tries = 0; is_registered && tries < 1000; tries++) {
		status = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
		if (status == 0)
			break;
		sched_yield();
	}
	serialize();
	return status < 0 ? -EPERM : 0;
}

void kymo_lib_forget_registration(void)
{
	is_registered = false;
}

/* ---- one site -------------------------------------------------------------------------------- */

static void jump_of(const struct lib_site *site, unsigned char ret[SIZE])
{
	int32_t distance = (int32_t)(site->cold - (site->text + SIZE));

	ret[0] = JUMP;
	memcpy(ret + 1, &distance, sizeof(distance));
}

/* Any mixture of the NOP's tail and the distance may be there: a write of four bytes that was cut short. */
static enum form form_of(const struct lib_site *site)
{
	const volatile unsigned char *text = site->text;
	unsigned char jump[SIZE];
	bool is_nop = true, is_jump = true, is_ours = true;

	jump_of(site, jump);
	for (int i = 1; i < SIZE; i++) {
		unsigned char byte = text[i];
		is_nop = is_nop && byte == NOP[i];
		is_jump = is_jump && byte == jump[i];
		is_ours = is_ours && (byte == NOP[i] || byte == jump[i]);
	}
	unsigned char first = text[0];
	if (first == INT3 || first == CALL)
		return FORM_BREAKPOINT;
	if (first == TEST && is_ours)
		return FORM_BETWEEN;
	if (first == NOP[0] && is_nop)
		return FORM_OFF;
	return first == JUMP && is_jump ? FORM_ON : FORM_UNKNOWN;
}

bool kymo_lib_is_off(const struct lib_site *site)
{
	return form_of(site) == FORM_OFF;
}

/* -EIO. Nothing stands between a look and its write but the kernel and debuggers, which stop all threads for theirs. */
static int write_text(int memory, unsigned char *at, const unsigned char *bytes, size_t size)
{
	ssize_t n;

	do
		n = pwrite(memory, bytes, size, (off_t)(uintptr_t)at);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)size)
		return 0;
	return n < 0 && (errno == EPERM || errno == EACCES) ? -errno : -EIO;
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct toggle {
	int memory;
	bool on;
};

/* From on or off to between. */
static int begin_toggle(const struct toggle *toggle, struct lib_site *site)
{
	static const unsigned char test = TEST;

	switch (form_of(site)) {
	case FORM_ON:
		return toggle->on ? 0 : write_text(toggle->memory, site->text, &test, 1);
	case FORM_OFF:
		return toggle->on ? write_text(toggle->memory, site->text, &test, 1) : 0;
	case FORM_BETWEEN:
		return 0;
	case FORM_BREAKPOINT:
		return -EBUSY;
	default:
		return -EIO;
	}
}

/* What a step finds where one before has been, but for sites that had nothing to do. */
static int check_between(const struct toggle *toggle, const struct lib_site *site, bool *ret)
{
	enum form form = form_of(site);

	*ret = form == FORM_BETWEEN;
	if (*ret || form == (toggle->on ? FORM_ON : FORM_OFF))
		return 0;
	return form == FORM_BREAKPOINT ? -EBUSY : -EIO;
}

static int change_tail(const struct toggle *toggle, struct lib_site *site)
{
	unsigned char bytes[SIZE];
	bool is_between;
	int status = check_between(toggle, site, &is_between);

	if (status < 0 || !is_between)
		return status;
	jump_of(site, bytes);
	return write_text(toggle->memory, site->text + 1, toggle->on ? bytes + 1 : NOP + 1, SIZE - 1);
}

static int finish_toggle(const struct toggle *toggle, struct lib_site *site)
{
	bool is_between;
	int status = check_between(toggle, site, &is_between);

	if (status < 0 || !is_between)
		return status;
	unsigned char first = toggle->on ? JUMP : NOP[0];
	return write_text(toggle->memory, site->text, &first, 1);
}

/* One step for all sites that came so far, and the synchronization after it. False when none may go on. */
static bool do_step(const struct toggle *toggle, struct lib_site **sites, size_t n,
		    int (*step)(const struct toggle *toggle, struct lib_site *site))
{
	for (size_t i = 0; i < n; i++) {
		if (!sites[i]->error)
			sites[i]->error = step(toggle, sites[i]);
	}
	int status = synchronize();
	for (size_t i = 0; i < n && status < 0; i++)
		sites[i]->error = sites[i]->error ? sites[i]->error : status;
	return status == 0;
}

static int first_error(struct lib_site **sites, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (sites[i]->error)
			return sites[i]->error;
	}
	return 0;
}

static int fail_all(struct lib_site **sites, size_t n, int status)
{
	for (size_t i = 0; i < n; i++)
		sites[i]->error = status;
	return status;
}

int kymo_lib_toggle(struct lib_site **sites, size_t n, bool on)
{
	int status = prepare_to_synchronize();
	if (status < 0)
		return fail_all(sites, n, status);
	struct toggle toggle = { open("/proc/self/mem", O_RDWR | O_CLOEXEC), on };
	if (toggle.memory < 0)
		return fail_all(sites, n,
				errno == EPERM                       ? -EPERM
				: errno == EACCES || errno == ENOENT ? -EACCES
								     : -EIO);
	fail_all(sites, n, 0);
	if (do_step(&toggle, sites, n, begin_toggle) && do_step(&toggle, sites, n, change_tail))
		do_step(&toggle, sites, n, finish_toggle);
	close(toggle.memory);
	return first_error(sites, n);
}

#else

/* The portable form has no text that changes; notes that say otherwise are refused. */
int kymo_lib_toggle(struct lib_site **sites, size_t n, bool on)
{
	for (size_t i = 0; i < n; i++)
		sites[i]->error = -EIO;
	return -EIO;
}

bool kymo_lib_is_off(const struct lib_site *site)
{
	return false;
}

void kymo_lib_forget_registration(void)
{
}

#endif
