/*
 * What test_random.c does, through the socket: the hub is a process, and so is each of the four clients
 * (random_engines.h). Any of them is killed at any time, and another comes in its place. The programs check themselves,
 * each client that lives checks what it was told, and this process checks how each ends.
 *
 * KYMO_HUB_EVENTS is how many callbacks there are to be in each test (4,000), KYMO_SEED repeats a run's choices.
 */
#include "random_engines.h"

/* Memory of all processes. */
struct arena {
	atomic_int hub_tid;              /* of the hub's thread, or 0 */
	atomic_int pid, round;           /* the program that there is; how many there were */
	atomic_int n_coming, n_attached; /* clients that want engines on it, that have them */
	atomic_bool is_over;
	atomic_uint n_callbacks, n_engines, n_wrong;
	uint32_t seed;
	unsigned int n_actions;
};

static struct arena *new_arena(uint32_t seed, unsigned int n_actions)
{
	struct arena *arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(arena, MAP_FAILED);
	memset(arena, 0, sizeof(*arena));
	arena->seed = seed;
	arena->n_actions = n_actions;
	return arena;
}

static const struct thing things[] = { { { "exec", "6" }, 7 }, { { "storm", "24" }, 3 }, { { "stops" }, 0 } };

static const struct thing *thing_of(int round)
{
	return &things[(unsigned int)round % 3];
}

/* ---- the hub --------------------------------------------------------------------------------- */

static void fault(struct arena *arena, const char *what, int number)
{
	if (!arena->n_wrong++)
		print_error("%s (%d)\n", what, number);
}

/* The program begins when two clients have engines on it, or when one that was to have some has been killed. */
static void run_program(struct kymo_hub *hub, struct arena *arena)
{
	const struct thing *thing = thing_of(arena->round + 1);
	char family[4096],
		*argv[] = { family, (char *)(uintptr_t)thing->words[0], (char *)(uintptr_t)thing->words[1], NULL };
	int status = -1;
	pid_t pid;

	find_family(family, sizeof(family));
	if (kymo_hub_launch(hub, 0, argv, &pid)) {
		fault(arena, "the program cannot be launched", arena->round);
		return;
	}
	arena->n_coming = arena->n_attached = 0;
	arena->round++;
	arena->pid = pid;
	for (int naps = 0; arena->n_attached < 2 && !arena->is_over && naps < 2000; naps++)
		nap();
	if (kymo_hub_start(hub, pid) || kymo_hub_wait(hub, pid, &status) || status != thing->status << 8)
		fault(arena, "a program has found something wrong", status);
	arena->pid = 0;
}

static int be_hub(struct arena *arena, uint32_t seed)
{
	struct kymo_hub *hub;

	if (kymo_hub_create(&hub) || kymo_hub_serve(hub))
		return 1;
	arena->hub_tid = hub->tid;
	while (!arena->is_over)
		run_program(hub, arena);
	kymo_hub_destroy(hub);
	return 0;
}

/* ---- a client -------------------------------------------------------------------------------- */

/*
 * A late client finds threads that may be ending. And not while others execute something: PTRACE_SEIZE waits for that
 * in the kernel, which waits for ends that the hub would have to take (docs/reference/limits/README.md).
 */
static bool add_lives(struct world *world, struct arena *arena, pid_t pid, int round)
{
	bool is_late = arena->n_coming++ >= 2;

	if (is_late && !strcmp(thing_of(round)->words[0], "exec")) {
		nap();
		return false;
	}
	add_life(&world->clients[0], pid, is_late ? KYMO_EVENT_REAP : 0);
	if (!world->lives.n)
		return false;
	arena->n_attached++;
	return true;
}

static void trace_program(struct world *world, struct arena *arena, pid_t pid, int round)
{
	unsigned int before = world->n_callbacks;

	for (unsigned int i = 0; arena->pid == pid && arena->round == round && !kymo_hub_failure(world->hub); i++) {
		unsigned int now = world->n_callbacks;

		meddle(world);
		arena->n_callbacks += now - before;
		before = now;
		if (i % 16 == 0) {
			let_all_go(world);
			nap();
		}
	}
	if (arena->pid != pid && !kymo_hub_failure(world->hub) && arena->hub_tid)
		check_ends(world);
}

/* A connection for each program. */
static void connect_once(struct world *world, struct arena *arena, int *last_round)
{
	int round = arena->round;
	pid_t pid = arena->pid;

	if (!pid || round == *last_round || hub_connect_to(arena->hub_tid, &world->hub)) {
		nap();
		return;
	}
	if (add_lives(world, arena, pid, round))
		trace_program(world, arena, pid, round);
	*last_round = round;
	kymo_hub_destroy(world->hub);
	forget_the_released(world);
	if (world->n_made != world->n_released)
		wrong(world, "not as many engines released as there were");
}

static int be_client(struct arena *arena, uint32_t seed)
{
	struct world world = { .lock = PTHREAD_MUTEX_INITIALIZER, .random = seed, .n_actions = arena->n_actions };
	int last_round = 0;

	world.clients[0] = (struct client){ .world = &world, .ops = random_ops };
	while (!arena->is_over && !world.n_wrong)
		connect_once(&world, arena, &last_round);
	arena->n_engines += world.n_made;
	arena->n_wrong += world.n_wrong;
	kymo_vec_deinit(&world.lives);
	return world.n_wrong ? 1 : 0;
}

/* ---- what begins and ends them ---------------------------------------------------------------- */

struct cast {
	struct arena *arena;
	struct world chance; /* for the dice */
	pid_t hub, clients[N_CLIENTS];
};

/* A process that runs this, and ends with this one. */
static pid_t begin_process(struct cast *cast, int (*run)(struct arena *arena, uint32_t seed))
{
	uint32_t seed = dice(&cast->chance, 1u << 30);
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(99);
	_exit(run(cast->arena, seed));
}

static int status_of(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void begin_all(struct cast *cast, unsigned int n_actions)
{
	uint32_t seed = first_seed();

	memset(cast, 0, sizeof(*cast));
	cast->chance.random = seed;
	cast->arena = new_arena(seed, n_actions);
	cast->hub = begin_process(cast, be_hub);
	for (size_t i = 0; i < N_CLIENTS; i++)
		cast->clients[i] = begin_process(cast, be_client);
}

static void end_all(struct cast *cast)
{
	cast->arena->is_over = true;
	for (size_t i = 0; i < N_CLIENTS; i++)
		assert_int_equal(status_of(cast->clients[i]), 0);
	if (cast->hub)
		assert_int_equal(status_of(cast->hub), 0);
	assert_int_equal(cast->arena->n_wrong, 0);
	print_message("%u callbacks, %d programs\n", cast->arena->n_callbacks, cast->arena->round);
	munmap(cast->arena, sizeof(*cast->arena));
}

/* Until some more callbacks were made, as a time says little on a busy machine; or for a second, if nothing goes on. */
static void any_number_of_callbacks(struct cast *cast, unsigned int n)
{
	unsigned int enough = cast->arena->n_callbacks + dice(&cast->chance, n);

	for (int naps = 0; cast->arena->n_callbacks < enough && naps < 1000; naps++)
		nap();
}

static bool is_enough(const struct cast *cast)
{
	return cast->arena->n_wrong || (cast->arena->n_callbacks >= n_wanted_events(4000) && cast->arena->round > 3);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void clients_are_told_the_end_once_each_and_programs_run_right(void **state)
{
	struct cast cast;

	begin_all(&cast, 5);
	while (!is_enough(&cast))
		nap();
	end_all(&cast);
}

static void kill_client(const struct cast *cast, size_t i)
{
	kill(cast->clients[i], SIGKILL);
	assert_int_equal(status_of(cast->clients[i]), SIGKILL);
}

/* No client wants anything of the program any more. One that waits for clients to begin stays the hub's. */
static void kill_all_clients(const struct cast *cast)
{
	struct arena *arena = cast->arena;
	bool has_begun = arena->n_attached >= 2;
	pid_t pid = arena->pid;

	for (size_t i = 0; i < N_CLIENTS; i++)
		kill_client(cast, i);
	if (has_begun && pid)
		eventually(arena->pid != pid || tracer_of(pid) == 0);
}

static void clients_that_are_killed_take_nothing_from_programs_and_from_other_clients(void **state)
{
	unsigned int n_killed = 0;
	struct cast cast;

	begin_all(&cast, 5);
	while (!is_enough(&cast) || n_killed < 20) {
		bool is_all = dice(&cast.chance, 8) == 0;
		size_t first = is_all ? 0 : dice(&cast.chance, N_CLIENTS), end = is_all ? N_CLIENTS : first + 1;

		any_number_of_callbacks(&cast, 300);
		if (is_all)
			kill_all_clients(&cast);
		else
			kill_client(&cast, first);
		for (size_t i = first; i < end; i++, n_killed++)
			cast.clients[i] = begin_process(&cast, be_client);
	}
	print_message("%u clients killed\n", n_killed);
	end_all(&cast);
}

/* Its program is this process' child from then on. Whether it ended just before can't be told otherwise. */
static void kill_hub(struct cast *cast)
{
	struct arena *arena = cast->arena;
	int status, round;
	pid_t pid;

	kill(cast->hub, SIGKILL);
	assert_int_equal(status_of(cast->hub), SIGKILL);
	arena->hub_tid = 0;
	pid = arena->pid;
	round = arena->round;
	arena->pid = 0;
	if (pid && waitpid(pid, &status, WNOHANG) == 0) {
		assert_int_equal(tracer_of(pid), 0);
		status = status_of(pid);
		if (status != thing_of(round)->status << 8)
			fault(arena, "a program has found something wrong without its hub", status);
	}
	cast->hub = begin_process(cast, be_hub);
}

/* Without single steps: a thread that is in one then may get a SIGTRAP. */
static void programs_run_right_when_their_hub_is_killed_and_clients_find_the_next_one(void **state)
{
	struct cast cast;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	begin_all(&cast, 3);
	for (int n = 0; !is_enough(&cast) || n < 12; n++) {
		int round = cast.arena->round;

		for (int naps = 0;
		     (cast.arena->round == round || !cast.arena->n_attached) && !cast.arena->n_wrong && naps < 20000;
		     naps++)
			nap();
		any_number_of_callbacks(&cast, 600);
		if (strcmp(thing_of(cast.arena->round)->words[0],
			   "stops")) /* its parent may wait for ever to be told: docs/reference/limits/README.md */
			kill_hub(&cast);
	}
	end_all(&cast);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		; /* those that woke the hubs up */
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_are_told_the_end_once_each_and_programs_run_right),
		cmocka_unit_test(clients_that_are_killed_take_nothing_from_programs_and_from_other_clients),
		cmocka_unit_test(programs_run_right_when_their_hub_is_killed_and_clients_find_the_next_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
