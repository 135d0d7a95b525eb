/*
 * The displaced copy of a window does what the window does: both are run, each in a child, on the same registers and
 * memory, and all that they leave behind is compared.
 *
 * The window stands alone between breakpoints, far from all else, so that a child stops where control leaves it: at a
 * breakpoint, or at an address that cannot be executed. Data pages appear when they are touched, with contents that
 * depend on their address alone; so random registers are pointers good enough. What is compared at the stop: where it
 * was, all registers, the pages touched in their order, the stack.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "load.h"

#define PAGE 4096u
#define FROM UINT64_C(0x200000000000) /* the window's pages; its offset in the page is kept */
#define TO (FROM + 0x10000000)
#define DATA UINT64_C(0x210000000000) /* what registers point to */
#define STACK UINT64_C(0x220000000000)
#define STACK_SIZE (16 * PAGE)
#define PAGES_MAX 40
#define N_REGS 17 /* REG_R8 … REG_RIP of sys/ucontext.h */

enum ending { UNFINISHED, STOPPED, SLOW };

struct outcome {
	int signal;
	enum ending ending;
	bool in_call; /* stopped between the parts of a call */
	uint64_t regs[N_REGS], flags;
	uint8_t vectors[384]; /* st and xmm */
	uint64_t memory, stack; /* hashes */
	uint64_t touched[PAGES_MAX];
	unsigned int n_touched;
};

struct job {
	struct kymo_plan plan;
	uint8_t displaced[KYMO_RELOCATED_MAX];
	uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1];
	int size;
	uint64_t from;
	uint64_t seed;
	bool moved; /* run the displaced copy */
};

static struct job job;
static struct outcome *shared; /* of the child that runs */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

/* Half of all values point to data; the others are small numbers, and few are anything. */
static uint64_t value_of(uint64_t seed)
{
	uint64_t random = mix(seed);

	switch (random & 7) {
	case 0:
	case 1:
	case 2:
		return random >> 60;
	case 3:
		return mix(random);
	default:
		return DATA + (random >> 20 & 0xffff0);
	}
}

static uint64_t hash(uint64_t state, const void *data, size_t size)
{
	const uint64_t *words = data;

	for (size_t i = 0; i < size / 8; i++)
		state = mix(state ^ words[i]);
	return state;
}

static void fill(void *page, uint64_t address, size_t size)
{
	uint64_t *words = page;

	for (size_t i = 0; i < size / 8; i++)
		words[i] = value_of(job.seed ^ (address + i * 8));
}

/* Where the stop is, in addresses of the original. */
static uint64_t original_pc(uint64_t pc, int signal)
{
	unsigned int i = 0, offset;

	if (signal == SIGTRAP)
		pc--;
	if (!job.moved || pc < TO || pc >= TO + (uint64_t)job.size)
		return pc;
	offset = (unsigned int)(pc - TO);
	while (i < job.plan.n_insns && job.insn_at[i + 1] <= offset)
		i++;
	shared->in_call = job.insn_at[i] != offset;
	return job.from + job.plan.insn_offset[i];
}

static void __attribute__((noreturn)) stop(int signal, const ucontext_t *context)
{
	for (int i = 0; i < N_REGS; i++)
		shared->regs[i] = (uint64_t)context->uc_mcontext.gregs[i];
	shared->regs[REG_RIP] = original_pc(shared->regs[REG_RIP], signal);
	shared->flags = (uint64_t)context->uc_mcontext.gregs[REG_EFL] & 0xcd5;
	memcpy(shared->vectors, (const char *)context->uc_mcontext.fpregs + 32, sizeof(shared->vectors));
	for (unsigned int i = 0; i < shared->n_touched; i++)
		shared->memory = hash(shared->memory ^ shared->touched[i], (void *)shared->touched[i], PAGE);
	shared->stack = hash(1, (void *)STACK, STACK_SIZE);
	shared->signal = signal;
	shared->ending = STOPPED;
	_exit(0);
}

static void on_fault(int signal, siginfo_t *info, void *data)
{
	const ucontext_t *context = data;
	uint64_t address = (uint64_t)info->si_addr, page = address & ~(uint64_t)(PAGE - 1);
	bool fetch = context->uc_mcontext.gregs[REG_ERR] & 0x10;
	void *mapped;

	if (signal != SIGSEGV || info->si_code != SEGV_MAPERR || fetch || address < 0x10000 ||
	    shared->n_touched == PAGES_MAX)
		stop(signal, context);
	mapped = mmap((void *)page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		      0);
	if (mapped != (void *)page)
		stop(signal, context);
	fill(mapped, page, PAGE);
	shared->touched[shared->n_touched++] = page;
}

static void on_alarm(int signal)
{
	shared->ending = SLOW;
	_exit(0);
}

/* Enter the code: a signal handler returns to it with the registers of the job. */
static void on_enter(int signal, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	greg_t *regs = context->uc_mcontext.gregs;

	for (int i = 0; i < N_REGS; i++)
		regs[i] = (greg_t)value_of(job.seed * 31 + (uint64_t)i);
	regs[REG_RSP] = (greg_t)(STACK + STACK_SIZE / 2 + (mix(job.seed) & 0xff8));
	regs[REG_RIP] = (greg_t)(job.moved ? TO : job.from);
	regs[REG_EFL] = (greg_t)((mix(job.seed + 1) & 0x8d5) | 0x202);
	for (int i = 0; i < 16 * 4; i++)
		context->uc_mcontext.fpregs->_xmm[i / 4].element[i % 4] = (uint32_t)mix(job.seed + 100 + (uint64_t)i);
}

static void map_at(uint64_t address, size_t size, int protection)
{
	void *mapped = mmap((void *)address, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (mapped != (void *)address)
		_exit(1);
	if (protection & PROT_EXEC)
		memset(mapped, 0xcc, size);
	else
		fill(mapped, address, size);
}

static void map_code(void)
{
	map_at(FROM, 2 * PAGE, PROT_EXEC);
	memcpy((void *)job.from, job.plan.original, job.plan.window);
	if (job.moved) {
		map_at(TO, PAGE, PROT_EXEC);
		memcpy((void *)TO, job.displaced, (size_t)job.size);
		if (kymo_encode_jump(job.from, TO, (uint8_t *)job.from))
			_exit(1);
		memset((char *)job.from + KYMO_PATCH_SIZE, 0xcc, job.plan.window - KYMO_PATCH_SIZE);
		mprotect((void *)TO, PAGE, PROT_READ | PROT_EXEC);
	}
	mprotect((void *)FROM, 2 * PAGE, PROT_READ | PROT_EXEC);
}

static void __attribute__((noreturn)) child(void)
{
	static const int faults[] = { SIGSEGV, SIGTRAP, SIGBUS, SIGFPE, SIGILL };
	static char stack[65536];
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct itimerval limit = { .it_value = { .tv_sec = 1 } };

	sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
	sigfillset(&action.sa_mask);
	action.sa_sigaction = on_fault;
	for (size_t i = 0; i < kymo_countof(faults); i++)
		sigaction(faults[i], &action, NULL);
	action.sa_sigaction = on_enter;
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_ONSTACK;
	action.sa_handler = on_alarm;
	sigaction(SIGVTALRM, &action, NULL);
	map_code();
	map_at(STACK, STACK_SIZE, PROT_READ);
	setitimer(ITIMER_VIRTUAL, &limit, NULL);
	raise(SIGUSR1);
	_exit(1);
}

static void run(bool moved, struct outcome *ret)
{
	pid_t pid;
	int status;

	memset(shared, 0, sizeof(*shared));
	job.moved = moved;
	pid = fork();
	if (!pid)
		child();
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	*ret = *shared;
}

static void describe(const struct kymo_plan *plan)
{
	char text[128];

	for (int i = 0; i < plan->n_insns; i++) {
		unsigned int at = plan->insn_offset[i];

		kymo_disassemble(plan->original + at, plan->window - at, plan->vaddr + at, text, sizeof(text));
		print_message("  0x%" PRIx64 ": %s\n", plan->vaddr + at, text);
	}
}

/* Run both. False where that tells nothing. */
static bool both_do_the_same(const struct kymo_plan *plan, uint64_t seed)
{
	struct outcome original, displaced;

	job = (struct job){ .plan = *plan, .seed = seed, .from = FROM + (plan->vaddr & (PAGE - 1)) };
	job.size = kymo_relocate(plan, job.from, TO, job.displaced, sizeof(job.displaced), job.insn_at);
	assert_true(job.size > 0);
	run(false, &original);
	run(true, &displaced);
	if (original.ending != STOPPED || displaced.ending != STOPPED || displaced.in_call)
		return false;
	if (memcmp(&original, &displaced, sizeof(original))) {
		describe(plan);
		print_message("  seed %" PRIu64 ": signals %d %d, pc 0x%" PRIx64 " 0x%" PRIx64 ", rsp 0x%" PRIx64
			      " 0x%" PRIx64 "\n",
			      seed, original.signal, displaced.signal, original.regs[REG_RIP], displaced.regs[REG_RIP],
			      original.regs[REG_RSP], displaced.regs[REG_RSP]);
		fail_msg("the displaced copy does something else");
	}
	return true;
}

/* ---- by hand --------------------------------------------------------------------------------------------------- */

/* Each line is a function of its own, planned at its start. */
/* clang-format off */
#define SNIPPETS                                                  \
	X("call *(%rsp)\n nop\n nop\n", 0)                        \
	X("nop\n nop\n call *(%rsp)\n", 1)                        \
	X("call *-136(%rsp)\n", 1)                                \
	X("nop\n call *120(%rsp)\n", 1)                           \
	X("nop\n call *127(%rsp)\n", 1)                           \
	X("call *0x120(%rsp)\n", 1)                               \
	X("nop\n nop\n call *(%rsp,%rcx,8)\n", 1)                 \
	X("nop\n call *8(%rsp,%rcx,8)\n", 1)                      \
	X("call *-16(%rsp)\n nop\n", 0)                           \
	X("nop\n call *-16(%rsp)\n", 1)                           \
	X("nop\n nop\n call *(%r12)\n", 1)                        \
	X("nop\n nop\n nop\n call *%rax\n", 1)                    \
	X("call *0x4000(%rip)\n", 1)                              \
	X("call .+0x4000\n", 1)                                   \
	X("call .-0x4000\n", 1)                                   \
	X("push (%rsp)\n push %rsp\n pop (%rsp)\n", 1)            \
	X("push 8(%rsp)\n push 0x4000(%rip)\n", 1)                \
	X("push %rsp\n pop %rsp\n ret $24\n", 1)                  \
	X("mov $5, %ecx\n", 1)                                    \
	X("nop\n nop\n loop .+0x20\n nop\n", 1)                   \
	X("nop\n nop\n loope .+0x20\n nop\n", 1)                  \
	X("nop\n nop\n loopne .-0x20\n nop\n", 1)                 \
	X("nop\n nop\n jrcxz .+0x20\n nop\n", 1)                  \
	X("nop\n nop\n jecxz .+0x20\n", 1)                        \
	X("addr32 loop .+0x20\n nop\n nop\n", 1)                  \
	X("dec %cl\n jnz .-2\n nop\n", 1)                         \
	X("jo .+0x20\n js .+0x20\n jp .+0x20\n", 1)               \
	X("jb .+0x20\n jbe .+0x20\n jl .+0x20\n", 1)              \
	X("jg .+0x4000\n", 1)                                     \
	X("jne .+0x4000\n", 1)                                    \
	X("jmp .+0x4000\n", 1)                                    \
	X("nop\n jmp .+0x20\n nop\n nop\n", 1)                    \
	X("jmp *0x4000(%rip)\n", 1)                               \
	X("nop\n nop\n jmp *(%rsp)\n", 1)                         \
	X("lea 0x4000(%rip), %rax\n", 1)                          \
	X("cmpl $0x12345678, 0x4000(%rip)\n", 1)                  \
	X("cmpb $1, 0x4000(%rip)\n", 1)                           \
	X("lock cmpxchg %rdx, 0x4000(%rip)\n", 1)                 \
	X("lock xaddl %edx, 0x4000(%rip)\n", 1)                   \
	X("movups 0x4000(%rip), %xmm3\n", 1)                      \
	X("pshufd $27, 0x4000(%rip), %xmm1\n", 1)                 \
	X("movl $7, 0x4000(%rip)\n", 1)                           \
	X("imul $1000, 0x4000(%rip), %ecx\n", 1)                  \
	X("rep movsb\n rep stosb\n nop\n", 1)                     \
	X("pushf\n adc %rax, %rbx\n sbb %rcx, %rdx\n", 1)         \
	X("push %rbp\n mov %rsp, %rbp\n leave\n ret\n", 1)        \
	X("mov %edi, -4(%rsp)\n mov -4(%rsp), %eax\n", 1)

/* clang-format on */

#define X(text, planned) ".balign 16\n .quad 1f - ., 2f - 1f\n 1: " text " 2:\n"
__asm__(".pushsection .rodata\n .balign 16\n snippets:\n" SNIPPETS ".balign 16\n snippets_end:\n .popsection\n");
#undef X

extern const uint8_t snippets[], snippets_end[];

#define X(text, planned) { text, planned },
static const struct {
	const char *text;
	bool planned;
} snippet_texts[] = { SNIPPETS };
#undef X

/* Plan the start of a function that is all there is of its module. */
static bool plan_alone(const uint8_t *code, size_t size, struct kymo_plan *ret)
{
	struct kymo_span text = { 0x1100, code, size };
	struct kymo_extent function = { 0x1100, 0x1100 + size };
	struct kymo_module_code module = {
		.text = &text,
		.n_text = 1,
		.functions = &function,
		.n_functions = 1,
		.position_independent = true,
	};
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	struct kymo_entry_map *map;
	size_t n;
	int err;

	assert_int_equal(kymo_entry_map_create(&module, &map), 0);
	err = kymo_plan(&module, map, 0x1100, ret, refusals, &n);
	kymo_entry_map_destroy(map);
	return !err;
}

static void snippets_do_the_same_elsewhere(void **state)
{
	const uint8_t *at = snippets;

	for (size_t i = 0; i < kymo_countof(snippet_texts); i++) {
		struct kymo_plan plan;
		unsigned int compared = 0;
		uint64_t start, size;

		memcpy(&start, at, 8);
		memcpy(&size, at + 8, 8);
		if (plan_alone(at + start, size, &plan) != snippet_texts[i].planned)
			fail_msg("%s: the plan is not as told", snippet_texts[i].text);
		for (uint64_t seed = 1; seed <= 64 && compared < 6 && snippet_texts[i].planned; seed++)
			compared += both_do_the_same(&plan, seed * 1000 + i);
		if (snippet_texts[i].planned && !compared)
			fail_msg("%s: never compared", snippet_texts[i].text);
		at += (start + size + 15) / 16 * 16;
	}
	assert_ptr_equal(at, snippets_end);
}

/* ---- from libc ------------------------------------------------------------------------------------------------- */

/* What differs from run to run, or touches what the child itself lives on. */
static bool is_repeatable(const struct kymo_plan *plan)
{
	static const char *const words[] = { "rdtsc",  "rdrand", "rdseed", "cpuid",  "rdpid",  "xgetbv",
					     "xsave",  "xrstor", "popf",   "fs:",    "gs:",    "fsbase",
					     "gsbase", "pkru",   "env",    "fxsave", "fnsave", "ssp" };
	char text[128];

	for (int i = 0; i < plan->n_insns; i++) {
		unsigned int at = plan->insn_offset[i];

		kymo_disassemble(plan->original + at, plan->window - at, 0, text, sizeof(text));
		for (size_t w = 0; w < kymo_countof(words); w++) {
			if (strstr(text, words[w]))
				return false;
		}
	}
	return true;
}

static void windows_of_libc_do_the_same_elsewhere(void **state)
{
	unsigned int planned = 0, compared = 0;
	struct kymo_entry_map *map;
	struct loaded libc;

	if (!load("/lib/x86_64-linux-gnu/libc.so.6", &libc)) {
		print_message("skipped: there is no /lib/x86_64-linux-gnu/libc.so.6\n");
		skip();
	}
	assert_int_equal(kymo_entry_map_create(&libc.code, &map), 0);
	for (uint64_t seed = 1; planned < 400 && seed < 20000; seed++) {
		const struct kymo_extent *function = &libc.code.functions[mix(seed) % libc.code.n_functions];
		uint64_t vaddr = function->start + mix(seed + 7) % (function->end - function->start);
		struct kymo_plan plan;

		if (kymo_plan(&libc.code, map, vaddr, &plan, NULL, NULL) || !is_repeatable(&plan))
			continue;
		planned++;
		compared += both_do_the_same(&plan, seed);
	}
	print_message("%u windows, %u compared\n", planned, compared);
	assert_true(compared >= planned * 3 / 4);
	kymo_entry_map_destroy(map);
	unload(&libc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snippets_do_the_same_elsewhere),
		cmocka_unit_test(windows_of_libc_do_the_same_elsewhere),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
