/* Private to the room. */
#ifndef KYMO_PROBE_INSTALL_LEAVE_H
#define KYMO_PROBE_INSTALL_LEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_detach_result;
struct kymo_maps;
struct kymo_process;
struct kymo_session;
struct kymo_session_list;

/*
 * Take recording `own`, one of `all`, out of the text of the stopped process; may be repeated. UNSAFE when a site
 * holds bytes of a third party: that site is left, all other sites are restored. `stays_ret`: its memory must stay for
 * now: a thread is in the middle of a vfork (not if `must_go`), or another process relies on it.
 */
struct kymo_error *probe_leave_text(struct kymo_process *process, const struct kymo_maps *maps,
				    const struct kymo_session *own, const struct kymo_session_list *all, bool must_go,
				    bool *stays_ret, struct kymo_detach_result *result);

#endif
