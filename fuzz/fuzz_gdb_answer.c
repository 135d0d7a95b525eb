/*
 * Any bytes as the packets of a client, one a line, for the handlers of the debugger stub. The stub has two processes
 * with three threads; the hub below it is made of an array. Files can't be opened, so that nothing is hurt; and the
 * processes of the machine are not listed.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "arch/registers.h"
#include "fuzz.h"
#include "gdb/btrace.h"
#include "gdb/files.h"
#include "gdb/nonstop.h"
#include "gdb/packet.h"
#include "gdb/packets.h"
#include "gdb/run.h"
#include "gdb/stop.h"
#include "gdb/thread.h"
#include "gdb/trace_hits.h"
#include "hub/engine.h"
#include "hub/ops.h"
#include "hub/state.h"

enum { MEMORY_AT = 0x1000, MEMORY_SIZE = 200000, PACKETS_MAX = 64, TRACEPOINTS_MAX = 8 };

static uint8_t memory[MEMORY_SIZE];
static struct user_regs_struct registers; /* of all threads */
static struct {
	uint8_t legacy[464];
	uint64_t components; /* XCR0 */
	uint8_t reserved[40];
	uint64_t in_use;
	uint8_t rest[56 + 256]; /* of the header, and AVX */
} xstate = { .components = 7, .in_use = 7 };

/* ---- the hub --------------------------------------------------------------------------------- */

static int set_events(struct kymo_engine *engine, unsigned int events)
{
	return 0;
}

static int control(struct kymo_engine *engine, enum kymo_action action)
{
	return 0;
}

static int get_registers(struct kymo_engine *engine, struct user_regs_struct *ret)
{
	*ret = registers;
	return 0;
}

static int set_registers(struct kymo_engine *engine, const struct user_regs_struct *to)
{
	registers = *to;
	return 0;
}

static int get_xstate(struct kymo_engine *engine, void *ret, size_t size, size_t *size_ret)
{
	check(size >= sizeof(xstate));
	memcpy(ret, &xstate, sizeof(xstate));
	*size_ret = sizeof(xstate);
	return 0;
}

static int set_xstate(struct kymo_engine *engine, const void *image, size_t size)
{
	check(size == sizeof(xstate));
	memcpy(&xstate, image, size);
	xstate.components = 7;
	return 0;
}

static int set_signal(struct kymo_engine *engine, int signal, const siginfo_t *info)
{
	return 0;
}

static int at(uint64_t address, size_t size)
{
	return address >= MEMORY_AT && size <= MEMORY_SIZE && address - MEMORY_AT <= MEMORY_SIZE - size ? 0 : -EIO;
}

static int read_memory(struct kymo_engine *engine, uint64_t address, void *data, size_t size)
{
	if (at(address, size))
		return -EIO;
	memcpy(data, memory + (address - MEMORY_AT), size);
	return 0;
}

static int write_memory(struct kymo_engine *engine, uint64_t address, const void *data, size_t size)
{
	if (at(address, size))
		return -EIO;
	memcpy(memory + (address - MEMORY_AT), data, size);
	return 0;
}

static pid_t tid_of(const struct kymo_engine *engine)
{
	return ((const struct gdb_thread *)engine->data)->tid;
}

static pid_t pid_of(const struct kymo_engine *engine)
{
	return ((const struct gdb_thread *)engine->data)->process->pid;
}

/* SIGKILL ends a process at once. Its threads stay until the stub forgets them. */
static int inject(struct kymo_engine *engine, const siginfo_t *info)
{
	static struct gdb_process nobody;
	const struct gdb_thread *thread = engine->data;
	struct gdb_process *process = thread->process;
	struct kymo_gdb *gdb = thread->gdb;

	if (info->si_signo != SIGKILL || process == &nobody)
		return 0;
	process->has_ended = true;
	for (size_t i = 0; i < gdb->threads.n; i++) {
		if (gdb->threads.items[i]->process != process)
			continue;
		gdb->threads.items[i]->process = &nobody;
		gdb->threads.items[i]->is_dead = true;
	}
	return 0;
}

static int change_breakpoint(struct kymo_engine *engine, uint64_t address)
{
	return at(address, 1);
}

static int watch(struct kymo_engine *engine, enum kymo_watch kind, uint64_t address, size_t size,
		 unsigned int *slot_ret)
{
	*slot_ret = 0;
	return at(address, size);
}

static int hit_again(struct kymo_engine *engine)
{
	return 0;
}

static int unwatch(struct kymo_engine *engine, unsigned int slot)
{
	return 0;
}

static int attach(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops, void *data,
		  struct kymo_engine **ret)
{
	return -ESRCH;
}

static int launch(struct kymo_hub *hub, unsigned int flags, char *const *argv, const uint64_t *calls, pid_t *pid_ret)
{
	check(argv[0]);
	return -ENOENT;
}

static void run(struct kymo_hub *hub, void (*it)(void *data), void *data)
{
	it(data);
}

static int try_barrier(struct kymo_engine *engine, uint64_t *event)
{
	return 0;
}

static const struct hub_ops hub_ops = {
	.attach = attach,
	.tid = tid_of,
	.pid = pid_of,
	.set_events = set_events,
	.control = control,
	.try_barrier = try_barrier,
	.get_registers = get_registers,
	.set_registers = set_registers,
	.get_xstate = get_xstate,
	.set_xstate = set_xstate,
	.set_signal = set_signal,
	.read = read_memory,
	.write = write_memory,
	.inject = inject,
	.insert_breakpoint = change_breakpoint,
	.remove_breakpoint = change_breakpoint,
	.hit_again = hit_again,
	.watch = watch,
	.unwatch = unwatch,
	.launch = launch,
	.run = run,
};

static void release(void *data)
{
	struct gdb_thread *thread = data;

	kymo_vec_deinit(&thread->watches);
	kymo_vec_deinit(&thread->trace_steps);
	gdb_btrace_destroy(thread->btrace);
	free(thread);
}

static const struct kymo_engine_ops engine_ops = { .size = sizeof(engine_ops), .release = release };

/* ---- the stub -------------------------------------------------------------------------------- */

static void add_thread(struct kymo_gdb *gdb, struct gdb_process *process, pid_t tid)
{
	struct gdb_thread *thread = calloc(1, sizeof(*thread));
	struct kymo_engine *engine = calloc(1, sizeof(*engine));

	check(thread && engine);
	*engine = (struct kymo_engine){ .refs = 1, .hub = gdb->hub, .ops = &engine_ops, .data = thread };
	*thread =
		(struct gdb_thread){ .gdb = gdb, .engine = engine, .process = process, .tid = tid, .is_stopped = true };
	check(kymo_vec_push(&gdb->threads, thread));
}

static void begin(struct kymo_gdb *gdb)
{
	struct gdb_process *a, *b;

	registers = (struct user_regs_struct){ .fs_base = MEMORY_AT, .rip = MEMORY_AT };
	gdb_init_files(gdb);
	gdb->is_client = gdb->is_extended = true;
	gdb->wake = gdb->client = gdb->ends_waits = -1;
	gdb->registers = calloc(KYMO_REGISTERS_MAX, sizeof(*gdb->registers));
	check(gdb->registers);
	gdb->n_registers = kymo_registers_list(7, gdb->registers);
	a = gdb_add_process(gdb, 0x40000001);
	b = gdb_add_process(gdb, 0x40000002);
	check(a && b);
	for (size_t i = 0; i < GDB_SYMBOLS; i++)
		a->symbols[i] = MEMORY_AT + 16 * i;
	a->n_symbols = GDB_SYMBOLS;
	add_thread(gdb, a, 0x40000001);
	add_thread(gdb, a, 0x40000003);
	add_thread(gdb, b, 0x40000002);
	gdb->files[0] = fuzz_file("contents", 8);
}

static void end(struct kymo_gdb *gdb)
{
	while (gdb->threads.n)
		gdb_forget_thread(gdb, gdb->threads.items[0]);
	gdb_free_state(gdb);
}

/* Threads that are traced have made steps: to the next instruction of zeros, or elsewhere. */
static void make_steps(struct kymo_gdb *gdb, size_t n)
{
	for (size_t i = 0; i < n * gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i % gdb->threads.n];
		const unsigned int event = i % 11 ? 0 : KYMO_EVENT_SYSCALL_EXIT;

		registers.rip += i % 7 ? 2 : 16;
		gdb_trace_stepped(thread, event);
		gdb_btrace_see(thread, event);
	}
}

/* Threads come to all tracepoints. */
static void hit_tracepoints(struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->tracing.points.n && i < TRACEPOINTS_MAX; i++) {
		const uint64_t address = gdb->tracing.points.items[i]->address;

		for (size_t j = 0; j < gdb->threads.n; j++)
			gdb_trace_hit(gdb->threads.items[j], address);
	}
}

/* They stop, by ^C. */
static void stop(struct kymo_gdb *gdb, struct gdb_text *reply)
{
	hit_tracepoints(gdb);
	make_steps(gdb, 40);
	for (size_t i = 0; i < gdb->threads.n; i++)
		gdb->threads.items[i]->is_stopped = true;
	gdb->is_interrupted = true;
	gdb->state = GDB_STOPPING;
	gdb_text_clear(reply);
	check(gdb_collect(gdb, reply) && reply->n);
}

/* Non-stop: threads that run have events, which the packet chooses. A notification is sent once in a sequence. */
static void have_events(struct kymo_gdb *gdb, unsigned char choice, struct gdb_text *reply)
{
	const bool was_in_sequence = gdb->is_in_sequence;

	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];
		const struct gdb_event event = { .kind = 1 + (choice + i) % GDB_EVENT_INTERRUPT,
						 .signal = SIGTRAP,
						 .address = MEMORY_AT,
						 .child = 0x40000005 };

		if (!thread->is_dead && !thread->is_stopped && choice & 1 << i)
			gdb_note(thread, &event);
	}
	gdb_text_clear(reply);
	if (gdb_notify(gdb, reply))
		check(!was_in_sequence && gdb->is_in_sequence && reply->n > strlen("Stop:"));
	else
		check(!reply->n);
}

static bool is_harmless(const char *packet, size_t n)
{
	static const char *const harmful[] = { "vFile:open", "vFile:unlink", "vFile:setfs", "vAttach", "qXfer:osdata" };

	for (size_t i = 0; i < sizeof(harmful) / sizeof(harmful[0]); i++)
		if (n >= strlen(harmful[i]) && !memcmp(packet, harmful[i], strlen(harmful[i])))
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *from = (const char *)data, *limit = from + size;
	struct kymo_hub hub = { .ops = &hub_ops, .thread = pthread_self() };
	struct kymo_gdb gdb = { .hub = &hub };
	struct gdb_text reply = { 0 };

	pthread_mutex_init(&hub.lock, NULL);
	begin(&gdb);
	for (int i = 0; i < PACKETS_MAX && from < limit && !gdb.is_over; i++) {
		const char *to = memchr(from, '\n', (size_t)(limit - from));
		enum gdb_answer answer = GDB_MUTE;

		to = to ? to : limit;
		gdb_text_clear(&reply);
		if (to - from <= GDB_PACKET_MAX && is_harmless(from, (size_t)(to - from)))
			answer = gdb_answer(&gdb, from, (size_t)(to - from), &reply);
		check(reply.n <= GDB_PACKET_MAX);
		if (answer == GDB_RUNS)
			stop(&gdb, &reply);
		check(gdb.state == (gdb.is_non_stop ? GDB_RUNNING : GDB_STOPPED));
		if (gdb.is_non_stop)
			have_events(&gdb, to > from ? (unsigned char)to[-1] : 0, &reply);
		from = to + (to < limit);
	}
	end(&gdb);
	gdb_text_deinit(&reply);
	pthread_mutex_destroy(&hub.lock);
	return 0;
}
