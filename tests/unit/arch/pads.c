#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "arch/guard.h"
#include "arch/writes.h"
#include "pads.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PAGE 4096u
#define RSEQ_SIGNATURE 0x53053053u

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

uint64_t tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/* ---- what glibc does ------------------------------------------------------------------------- */

int64_t tid_offset(void)
{
	/* bits, number of elements, offset: as libthread_db gets it */
	const uint32_t *description = dlsym(RTLD_DEFAULT, "_thread_db_pthread_tid");
	int64_t offset = description ? description[2] : 0x2d0;
	int32_t tid;

	memcpy(&tid, (const char *)__builtin_thread_pointer() + offset, sizeof(tid));
	assert_int_equal(tid, gettid());
	return offset;
}

int64_t rseq_offset(void)
{
	return &__rseq_offset && __rseq_size ? __rseq_offset : 0;
}

static char *own_rseq(void)
{
	return (char *)__builtin_thread_pointer() + rseq_offset();
}

uint32_t own_rseq_cpu(void)
{
	return *(volatile uint32_t *)(void *)(own_rseq() + 4);
}

uint64_t own_rseq_cs(void)
{
	return rseq_offset() ? *(volatile uint64_t *)(void *)(own_rseq() + 8) : 0;
}

void unregister_own_rseq(void)
{
	assert_int_equal(syscall(SYS_rseq, own_rseq(), 32, 1, RSEQ_SIGNATURE), 0);
}

bool is_possible(enum kind kind)
{
	return kind == LOCKS || rseq_offset();
}

/* ---- the target ------------------------------------------------------------------------------- */

static uint8_t *map(size_t size, int protection, int flags, int fd)
{
	void *mapped = mmap(NULL, size, protection, flags, fd, 0);

	assert_ptr_not_equal(mapped, MAP_FAILED);
	return mapped;
}

static void map_code(struct world *world)
{
	int fd = memfd_create("pads", MFD_CLOEXEC);
	const uint8_t *guest;
	size_t size;
	void *live;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, CODE_SIZE), 0);
	world->write = map(CODE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	world->code = map(CODE_SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, fd);
	close(fd);
	memset(world->write, 0xcc, CODE_SIZE);
	world->live = world->code + CODE_SIZE - 2 * PAGE;
	live = mmap(world->live, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(live, world->live);
	assert_int_equal(madvise(world->live, PAGE, MADV_WIPEONFORK), 0);
	guest = kymo_pad_guest(&size);
	memcpy(world->write, guest, size);
	world->code_used = (size + 31) / 32 * 32;
	world->env.geometry = (uint64_t)world->code + world->code_used;
}

/* What pads know of the rings is where they can't write it. */
static void write_geometry(struct world *world)
{
	struct kymo_pad_rings *geometry = (void *)(world->write + world->code_used);

	world->code_used += kymo_pad_rings_size(world->n_rings);
	*geometry = (struct kymo_pad_rings){
		(uint64_t)world_ring(world, 0), world->n_rings, world->shape.overwrite, { 0 }
	};
	for (uint32_t i = 0; i < world->n_rings; i++) {
		const struct kymo_wire_ring *ring = world_ring(world, i);

		geometry->rings[i] =
			(struct kymo_pad_ring){ ring->data_offset + ring->n_subbuffers * ring->subbuffer_size,
						ring->data_offset, ring->subbuffer_size, ring->n_subbuffers,
						ring->cpu };
	}
}

struct kymo_wire_ring *world_ring(const struct world *world, uint32_t i)
{
	return (void *)(world->shared + (size_t)i * KYMO_WIRE_RING_STRIDE);
}

static void map_rings(struct world *world)
{
	uint64_t each = world->shape.subbuffer_size * world->shape.n_subbuffers + world->gap, controls;

	controls = (world->n_rings * KYMO_WIRE_RING_STRIDE + PAGE - 1) / PAGE * PAGE + world->gap;
	world->shared_size = controls + world->n_rings * each;
	world->around = map(world->shared_size + 2 * world->reserve, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	assert_int_equal(madvise(world->around, world->shared_size + 2 * world->reserve, MADV_NOHUGEPAGE), 0);
	world->shared = world->around + world->reserve;
	if (!world->reserve) /* forked children have the same */
		assert_ptr_equal(mmap(world->shared, world->shared_size, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0),
				 world->shared);
	world->readers = calloc(world->n_rings, sizeof(*world->readers));
	world->last_stamp = calloc(world->n_rings, sizeof(*world->last_stamp));
	assert_non_null(world->readers);
	assert_non_null(world->last_stamp);
	for (uint32_t i = 0; i < world->n_rings; i++) {
		struct kymo_wire_ring *ring = world_ring(world, i);
		const uint8_t *data = world->shared + controls + i * each;

		ring->data_offset = (uint64_t)(data - (const uint8_t *)ring);
		ring->subbuffer_size = world->shape.subbuffer_size;
		ring->n_subbuffers = world->shape.n_subbuffers;
		ring->overwrite = world->shape.overwrite;
		ring->cpu = i % world->env.n_cpus;
		ring->is_sequenced = i < world->n_sequenced;
		kymo_ring_init(&world->readers[i], ring, data, ring->subbuffer_size, ring->n_subbuffers,
			       ring->overwrite);
	}
}

void world_state(struct world *world, uint8_t state)
{
	*(volatile uint8_t *)world->live = state;
}

void world_init(struct world *world, enum kind kind, struct shape shape)
{
	world_init_within(world, kind, shape, 0, 0);
}

void world_init_within(struct world *world, enum kind kind, struct shape shape, uint64_t gap, uint64_t reserve)
{
	int64_t offsets[2] = { tid_offset(), rseq_offset() };
	const int32_t pid = WORLD_PID;

	memset(world, 0, sizeof(*world));
	world->kind = kind;
	world->shape = shape;
	world->gap = gap;
	world->reserve = reserve;
	world->env.n_cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	world->n_sequenced = kind == SEQUENCES ? world->env.n_cpus : 0;
	world->n_rings = world->n_sequenced + world->env.n_cpus + N_SPARE;
	map_code(world);
	map_rings(world);
	write_geometry(world);
	memcpy(world->live + KYMO_PAD_LIVE_TID_OFFSET, &offsets[0], 8);
	memcpy(world->live + KYMO_PAD_LIVE_RSEQ_OFFSET, &offsets[1], 8);
	world->vforks = (void *)(world->live + KYMO_PAD_LIVE_VFORK_LIST);
	world->env.vforks = (uint64_t)world->vforks;
	world->samples = (void *)(world->live + KYMO_PAD_LIVE_SAMPLES);
	world->env.samples = (uint64_t)world->samples;
	world->env.lease = (uint64_t)world->live + KYMO_PAD_LIVE_LEASE;
	memcpy(world->live + KYMO_PAD_LIVE_VFORKS, &world->env.vforks, 8);
	memcpy(world->live + KYMO_PAD_LIVE_PID, &pid, sizeof(pid));
	memcpy(world->live + KYMO_PAD_LIVE_INNER_PID, &pid, sizeof(pid));
	world_state(world, kind == SEQUENCES ? KYMO_PAD_RSEQ : KYMO_PAD_LIVE);
	world->header = (void *)map(sizeof(*world->header), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	world->env.header = (uint64_t)world->header;
	world->words = (void *)map(sizeof(*world->words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	world->env.words = (uint64_t)world->words;
	world->counts = (void *)map(sizeof(*world->counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	world->env.data = (uint64_t)world->counts;
	world->env.guest = (uint64_t)world->code;
	world->env.live = (uint64_t)world->live;
	world->env.rseq_rings = kind == SEQUENCES ? (uint64_t)world_ring(world, 0) : 0;
	world->env.rings = (uint64_t)world_ring(world, world->n_sequenced);
	world->env.n_sequenced = world->n_sequenced;
	world->env.n_rings = world->n_rings - world->n_sequenced;
}

void world_deinit(struct world *world)
{
	size_t size;
	const uint8_t *guest = kymo_pad_guest(&size);

	/* The image ran here, and nowhere else; it has no data that could change. */
	assert_memory_equal(world->code, guest, size);
	kymo_vec_deinit(&world->records);
	free(world->readers);
	free(world->last_stamp);
	munmap(world->header, sizeof(*world->header));
	munmap(world->words, sizeof(*world->words));
	munmap(world->counts, sizeof(*world->counts));
	munmap(world->around, world->shared_size + 2 * world->reserve);
	munmap(world->code, CODE_SIZE);
	munmap(world->write, CODE_SIZE);
}

void world_write(struct world *world, uint64_t address, const void *bytes, size_t size)
{
	memcpy(world->write + (address - (uint64_t)world->code), bytes, size);
}

uint64_t world_code(struct world *world, const void *bytes, size_t size)
{
	uint64_t address = (uint64_t)world->code + (world->code_used + 31) / 32 * 32;

	world->code_used = address + size - (uint64_t)world->code;
	assert_true(world->code_used <= CODE_SIZE - 2 * PAGE);
	world_write(world, address, bytes, size);
	return address;
}

static void patch(struct world *world, const struct site *site, uint64_t entry)
{
	uint8_t jump[KYMO_WINDOW_MAX];

	memset(jump, 0xcc, sizeof(jump));
	assert_int_equal(kymo_encode_jump(site->address, entry, jump), 0);
	world_write(world, site->address, jump, site->plan.window);
}

static void put_pad(struct world *world, struct site *site, const struct kymo_pad_event *events, size_t n,
		    const struct kymo_pad_chain *chain)
{
	size_t max = kymo_pad_size_max(events, n);
	uint8_t *pad = malloc(max);

	assert_non_null(pad);
	for (size_t i = 0; i < n; i++) {
		assert_true(events[i].id < kymo_countof(world->sizes));
		world->sizes[events[i].id] = kymo_pad_body_size(events[i].args, events[i].n_args);
		world->is_known[events[i].id] = true;
	}
	site->pad = (uint64_t)world->code + (world->code_used + 31) / 32 * 32;
	assert_int_equal(kymo_pad_emit(&world->env, &site->plan, site->address, site->pad, events, n, chain, pad, max,
				       &site->layout),
			 0);
	assert_int_equal(world_code(world, pad, site->layout.size), site->pad);
	free(pad);
	patch(world, site, site->pad + site->layout.entry);
}

/* The plan has no more than where its instructions are, and what is said of the stack. */
static void put_planned(struct world *world, const uint8_t *bytes, size_t size, const struct kymo_plan *plan,
			const struct kymo_pad_event *events, size_t n, struct site *ret)
{
	struct site site = { .address = world_code(world, bytes, size), .plan = *plan };
	const struct kymo_pad_chain alone = { 0 };

	site.plan.tactic = KYMO_TACTIC_JUMP;
	site.plan.vaddr = site.address - world->bias;
	memcpy(site.plan.original, bytes, plan->window);
	put_pad(world, &site, events, n, &alone);
	*ret = site;
}

/* The plan's one instruction is the first of `bytes`. */
static void put_site(struct world *world, const uint8_t *bytes, size_t size, uint8_t window,
		     const struct kymo_pad_event *events, size_t n, struct site *ret)
{
	const struct kymo_plan plan = { .window = window, .n_insns = 1, .insn_offset = { 0, window } };

	put_planned(world, bytes, size, &plan, events, n, ret);
}

void world_put_before(struct world *world, const struct site *site, const struct kymo_pad_event *events, size_t n,
		      struct site *ret)
{
	uint64_t inner = site->pad + site->layout.inner;
	struct site before = { .address = site->address, .plan = site->plan };
	const struct kymo_pad_chain chain = { .next = world_code(world, &inner, sizeof(inner)), .save_flags = true };

	put_pad(world, &before, events, n, &chain);
	*ret = before;
}

void world_function(struct world *world, const struct kymo_pad_event *events, size_t n, struct site *ret)
{
	/* lea 7(%rdi,%rdi),%eax; ret */
	static const uint8_t bytes[] = { 0x8d, 0x84, 0x3f, 7, 0, 0, 0, 0xc3 };

	put_site(world, bytes, sizeof(bytes), 7, events, n, ret);
}

void world_guard(struct world *world, const struct kymo_plan *plan, struct site *ret)
{
	struct site site = { .address = plan->vaddr, .plan = *plan };
	uint8_t pad[1024];

	site.pad = (uint64_t)world->code + (world->code_used + 31) / 32 * 32;
	assert_int_equal(kymo_guard_emit(&world->env, plan, site.address, site.pad, pad, sizeof(pad), &site.layout), 0);
	assert_int_equal(world_code(world, pad, site.layout.size), site.pad);
	patch(world, &site, site.pad);
	*ret = site;
}

uint32_t call(const struct site *site, uint64_t x)
{
	uint32_t result = ((uint32_t(*)(uint64_t))site->address)(x);

	assert_int_equal(result, (uint32_t)(2 * x + 7));
	assert_int_equal(own_rseq_cs(), 0);
	return result;
}

/* ---- known registers ------------------------------------------------------------------------- */

_Static_assert(offsetof(struct registers, flags) == 128 && offsetof(struct registers, vectors) == 136 &&
		       offsetof(struct registers, masks) == 2184,
	       "offsets below");

extern uint8_t pads_has_avx512; /* the vectors are zmm */
void pads_enter(const struct registers *in, struct registers *out, uint64_t address);
extern const uint8_t pads_landing[];

__asm__(".pushsection .bss\n"
	".globl pads_has_avx512\n"
	"pads_stack: .quad 0\n pads_target: .quad 0\n pads_out: .quad 0\n pads_rsp: .quad 0\n pads_rax: .quad 0\n"
	"pads_has_avx512: .byte 0\n"
	".popsection\n"
	".text\n"
	".globl pads_enter, pads_landing\n"
	"pads_enter:\n"
	"	push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n pushfq\n"
	"	mov %rsp, pads_stack(%rip)\n	mov %rsi, pads_out(%rip)\n	mov %rdx, pads_target(%rip)\n"
	"	cmpb $0, pads_has_avx512(%rip)\n	je 1f\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"	vmovdqu64 136+64*\\n(%rdi), %zmm\\n\n"
	".endr\n"
	".irp n, 0,1,2,3,4,5,6,7\n"
	"	kmovw 2184+8*\\n(%rdi), %k\\n\n"
	".endr\n"
	"	jmp 2f\n"
	"1:\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups 136+64*\\n(%rdi), %xmm\\n\n"
	".endr\n"
	"2:	lea 128(%rdi), %rsp\n	popfq\n"
	"	mov 0(%rdi), %rax\n	mov 8(%rdi), %rcx\n	mov 16(%rdi), %rdx\n	mov 24(%rdi), %rbx\n"
	"	mov 32(%rdi), %rsp\n	mov 40(%rdi), %rbp\n	mov 48(%rdi), %rsi\n"
	"	mov 64(%rdi), %r8\n	mov 72(%rdi), %r9\n	mov 80(%rdi), %r10\n	mov 88(%rdi), %r11\n"
	"	mov 96(%rdi), %r12\n	mov 104(%rdi), %r13\n	mov 112(%rdi), %r14\n	mov 120(%rdi), %r15\n"
	"	mov 56(%rdi), %rdi\n"
	"	jmp *pads_target(%rip)\n"
	"pads_landing:\n"
	"	mov %rsp, pads_rsp(%rip)\n	mov %rax, pads_rax(%rip)\n	mov pads_out(%rip), %rax\n"
	"	mov %rcx, 8(%rax)\n	mov %rdx, 16(%rax)\n	mov %rbx, 24(%rax)\n	mov %rbp, 40(%rax)\n"
	"	mov %rsi, 48(%rax)\n	mov %rdi, 56(%rax)\n	mov %r8, 64(%rax)\n	mov %r9, 72(%rax)\n"
	"	mov %r10, 80(%rax)\n	mov %r11, 88(%rax)\n	mov %r12, 96(%rax)\n	mov %r13, 104(%rax)\n"
	"	mov %r14, 112(%rax)\n	mov %r15, 120(%rax)\n"
	"	mov pads_rax(%rip), %rcx\n	mov %rcx, 0(%rax)\n	mov pads_rsp(%rip), %rcx\n	mov %rcx, "
	"32(%rax)\n"
	"	lea 136(%rax), %rsp\n	pushfq\n"
	"	mov pads_stack(%rip), %rsp\n"
	"	cmpb $0, pads_has_avx512(%rip)\n	je 3f\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"	vmovdqu64 %zmm\\n, 136+64*\\n(%rax)\n"
	".endr\n"
	".irp n, 0,1,2,3,4,5,6,7\n"
	"	kmovw %k\\n, 2184+8*\\n(%rax)\n"
	".endr\n"
	"	vzeroupper\n"
	"	jmp 4f\n"
	"3:\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"	movups %xmm\\n, 136+64*\\n(%rax)\n"
	".endr\n"
	"4:	popfq\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
	"	ret\n");

void world_landing(struct world *world, const struct kymo_pad_event *events, size_t n, struct site *ret)
{
	/* a nop of five bytes; jmp *0(%rip), the address after it */
	uint8_t bytes[19] = { 0x0f, 0x1f, 0x44, 0, 0, 0xff, 0x25 };
	const uint8_t *landing = pads_landing;

	memcpy(bytes + 11, &landing, 8);
	put_site(world, bytes, sizeof(bytes), 5, events, n, ret);
}

void world_pushing(struct world *world, const struct kymo_pad_event *events, size_t n, uint8_t scratch,
		   struct site *ret)
{
	/* push %rbx; lea 8(%rsp),%rsp; jmp *0(%rip), the address after it */
	uint8_t bytes[20] = { 0x53, 0x48, 0x8d, 0x64, 0x24, 8, 0xff, 0x25 };
	const uint8_t *landing = pads_landing;
	const struct kymo_plan plan = {
		.window = 6, .n_insns = 2, .insn_offset = { 0, 1, 6 }, .flags_are_dead = true, .scratch = scratch
	};

	memcpy(bytes + 12, &landing, 8);
	put_planned(world, bytes, sizeof(bytes), &plan, events, n, ret);
}

void enter(const struct site *site, const struct registers *in, struct registers *out)
{
	*out = *in;
	pads_has_avx512 = !!__builtin_cpu_supports("avx512f");
	pads_enter(in, out, site->address);
	assert_int_equal(own_rseq_cs(), 0);
}

uint8_t *stack_create(void)
{
	uint8_t *stack = map(STACK_SIZE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	assert_int_equal(mprotect(stack + STACK_SIZE, PAGE, PROT_NONE), 0);
	return stack;
}

void stack_destroy(uint8_t *stack)
{
	munmap(stack, STACK_SIZE + PAGE);
}
