/* Calls as members of JSON objects. */
#ifndef KYMO_SYSCALL_JSON_H
#define KYMO_SYSCALL_JSON_H

#include <stdint.h>
#include <stdio.h>

struct kymo_line;
struct kymo_syscall_call;
struct kymo_syscall_target;

/*
 * Members of the JSON object that a call is, without what stands around them: "number": 0, "name": "read", "args":
 * ["3", …], of the text that the two steps have made; and what came back: , "result": 3, "error": …, "shown": …,
 * "duration_ns": …. `number` is as the program has it. For a call whose result is not known, kymo_syscall_stop() takes
 * the place of kymo_syscall_leave(). The second needs room for a text: that of the first, which is over with; it says
 * whether memory was out (is_cut).
 */
void kymo_syscall_write_json(FILE *out, const struct kymo_syscall_call *call, uint64_t number,
			     const struct kymo_line *text);
void kymo_syscall_write_json_result(FILE *out, const struct kymo_syscall_call *call,
				    const struct kymo_syscall_target *target, uint64_t duration_ns,
				    struct kymo_line *text);
void kymo_syscall_stop(struct kymo_syscall_call *call, const struct kymo_line *text);

#endif
