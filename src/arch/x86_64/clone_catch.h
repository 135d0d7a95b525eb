/* Where threads come back into a clone. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_CATCH_H
#define KYMO_ARCH_X86_64_CLONE_CATCH_H

struct kymo_clone;
struct kymo_refusal;
struct x86_body;

/* Find all catches, and make room for them: drop those that have none if nothing is lost but their record. Calls that
 * can't be executed where they are lose `is_in_place`. -EPERM, -ENOMEM. */
int x86_clone_catch(struct kymo_clone *clone, struct x86_body *body, struct kymo_refusal *refusal);

#endif
