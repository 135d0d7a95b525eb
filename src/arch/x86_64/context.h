/* Code that finds out what runs a pad: its thread, process and CPU. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CONTEXT_H
#define KYMO_ARCH_X86_64_CONTEXT_H

struct code;
struct kymo_pad_env;
struct label;

/* mov `at` in the live page, %reg */
void x86_load_live(struct code *c, const struct kymo_pad_env *env, unsigned int reg, unsigned int at);

/* `reg`, rax or rdx, = this thread's id, from its control block, which has to be glibc's. */
void x86_load_tid(struct code *c, const struct kymo_pad_env *env, unsigned int reg);

/* eax = what records have as this thread's id where it is not known: an id of its process. */
void x86_load_pid(struct code *c, const struct kymo_pad_env *env);

/* eax = this process's id, as it has it itself. */
void x86_load_inner_pid(struct code *c, const struct kymo_pad_env *env);

/* rax = the thread pointer, the FS base. A jump to `fault` where there is none. Nothing is read by it: a thread that is
 * just beginning may have 0 there. The flags are changed. */
void x86_load_thread(struct code *c, const struct kymo_pad_env *env, struct label *fault);

/* eax = the number of this CPU. The flags are changed. */
void x86_load_cpu(struct code *c);

#endif
