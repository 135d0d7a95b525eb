/* Arguments that are composed before the record is begun. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_COMPOSE_H
#define KYMO_ARCH_X86_64_COMPOSE_H

struct code;
struct kymo_pad_env;
struct kymo_pad_event;
struct x86_pad_site;

/* Compose the arguments: all of the record that follows the thread's id. All four free registers are changed. */
void x86_compose(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		 const struct x86_pad_site *site);

#endif
