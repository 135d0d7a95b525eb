#include "gdb/packets.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "gdb/breakpoints.h"
#include "gdb/btrace_packets.h"
#include "gdb/end.h"
#include "gdb/files.h"
#include "gdb/ids.h"
#include "gdb/libraries.h"
#include "gdb/memory.h"
#include "gdb/nonstop.h"
#include "gdb/packet.h"
#include "gdb/pads.h"
#include "gdb/process.h"
#include "gdb/registers.h"
#include "gdb/resume.h"
#include "gdb/run.h"
#include "gdb/settings.h"
#include "gdb/static_points.h"
#include "gdb/tell.h"
#include "gdb/thread.h"
#include "gdb/tls.h"
#include "gdb/trace_frames.h"
#include "gdb/trace_run.h"
#include "gdb/trace_variables.h"
#include "gdb/tracepoints.h"
#include "gdb/xfer.h"
#include "hub/hub.h"

/* ---- small ones ------------------------------------------------------------------------------ */

static void set_extended(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb->is_extended = true;
	gdb_text_put(reply, "OK");
}

/* ?: why threads are stopped. */
static void tell_why(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_thread *thread = gdb_general_thread(gdb);

	if (gdb->is_non_stop) {
		gdb_tell_standing_ones(gdb, reply);
		return;
	}
	if (gdb_tell_pending_signal(gdb, reply))
		return;
	if (!thread) {
		gdb_text_put(reply, gdb->is_extended ? "W00" : "E01");
		return;
	}
	gdb_tell_standing(thread, SIGTRAP, reply);
}

static void end_acks(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb->has_no_acks = true;
	gdb_text_put(reply, "OK");
}

static void tell_actions(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_text_put(reply, "vCont;c;C;s;S;t;r");
}

static void put_hex(struct gdb_text *reply, const char *text)
{
	gdb_text_hex(reply, text, strlen(text));
}

/* Commands of gdbserver's that scripts give. What is debugged is told by the command line here. */
static const char *find_setting(const char *command)
{
	static const struct {
		const char *command, *answer;
	} settings[] = {
		{ "set debug 1", "Debug output enabled.\n" },
		{ "set debug 0", "Debug output disabled.\n" },
		{ "set remote-debug 1", "Protocol debug output enabled.\n" },
		{ "set remote-debug 0", "Protocol debug output disabled.\n" },
		{ "set debug-format all", "All extra debug format options enabled.\n" },
		{ "set debug-format none", "All extra debug format options disabled.\n" },
	};

	for (size_t i = 0; i < kymo_countof(settings); i++)
		if (!strcmp(settings[i].command, command))
			return settings[i].answer;
	return NULL;
}

/* libthread_db is not used here: tls.c. */
static void tell_path_of_libthread_db(const char *path, struct gdb_text *reply)
{
	char text[PATH_MAX];

	snprintf(text, sizeof(text), "kymo does without libthread_db.\nlibthread-db-search-path set to `%s'\n", path);
	put_hex(reply, text);
}

static void refuse_command(struct kymo_gdb *gdb, struct gdb_text *reply)
{
	gdb_text_put(&gdb->console, "O");
	put_hex(&gdb->console, "Unknown monitor command; try 'monitor help'\n");
	gdb_text_put(reply, "E01");
}

static void set_pads(struct kymo_gdb *gdb, enum kymo_gdb_pads pads, struct gdb_text *reply)
{
	static const char *const sentences[] = {
		[KYMO_GDB_PADS_WITHOUT_LOADS] = ("Conditions that read no memory are evaluated in the threads, where "
						 "that is possible.\n"),
		[KYMO_GDB_PADS_ALL] = "Conditions are evaluated in the threads, where that is possible.\n",
		[KYMO_GDB_PADS_NONE] = "Conditions are evaluated at a stop of each hit.\n",
	};

	gdb_pads_set(gdb, pads);
	put_hex(reply, gdb->has_joined
			       ? "Conditions are evaluated at a stop of each hit: another process has the hub.\n"
			       : sentences[pads]);
}

/* monitor. */
static void take_command(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	static const char path_of_libthread_db[] = "set libthread-db-search-path ";
	const size_t n_path = sizeof(path_of_libthread_db) - 1;
	char command[256];

	if (!gdb_take_hex_string(words, command, sizeof(command)) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
	} else if (!strcmp(command, "exit")) {
		gdb->is_over = true;
		gdb_text_put(reply, "OK");
	} else if (!strcmp(command, "set pads 1") || !strcmp(command, "set pads 0")) {
		set_pads(gdb, command[9] == '1' ? KYMO_GDB_PADS_ALL : KYMO_GDB_PADS_NONE, reply);
	} else if (!strcmp(command, "set pads auto")) {
		set_pads(gdb, KYMO_GDB_PADS_WITHOUT_LOADS, reply);
	} else if (find_setting(command)) {
		put_hex(reply, find_setting(command));
	} else if (!strncmp(command, path_of_libthread_db, n_path)) {
		tell_path_of_libthread_db(command + n_path, reply);
	} else if (!strcmp(command, "help")) {
		put_hex(reply, "The following monitor commands are supported:\n  help\n    Print this text\n"
			       "  set pads 0|1|auto\n    Evaluate no conditions of breakpoints in the threads "
			       "themselves, all, or\n"
			       "    those that read no memory\n"
			       "  set debug 0|1\n  set remote-debug 0|1\n  set debug-format all|none\n"
			       "    Accepted, as of gdbserver; kymo-gdbserver --debug writes packets\n"
			       "  set libthread-db-search-path PATH\n"
			       "    Accepted; kymo does without libthread_db\n"
			       "  exit\n    Quit GDBserver; what is debugged runs on\n");
	} else {
		refuse_command(gdb, reply);
	}
}

/* ---- the table ------------------------------------------------------------------------------- */

enum {
	ON_HUB = 0,
	ON_MAIN = 1,  /* it waits, or takes long */
	RESUMES = 2,  /* an empty reply: there is one later */
	IS_MUTE = 4,  /* an empty reply is none */
	IS_WHOLE = 8, /* nothing may follow the name */
};

/* The first row whose name a packet begins with. */
static const struct packet {
	const char *name;
	void (*run)(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
	unsigned int flags;
} packets[] = {
	{ "qSupported", gdb_support, ON_HUB },
	{ "QStartNoAckMode", end_acks, IS_WHOLE },
	{ "QNonStop:", gdb_set_non_stop, ON_MAIN },
	{ "QPassSignals:", gdb_pass_signals, ON_HUB },
	{ "QProgramSignals:", gdb_program_signals, ON_HUB },
	{ "QCatchSyscalls:", gdb_catch_calls, ON_HUB },
	{ "QThreadEvents:", gdb_tell_threads, ON_HUB },
	{ "Qbtrace-conf:", gdb_configure_branches, ON_HUB },
	{ "Qbtrace:", gdb_trace_branches, ON_HUB },
	{ "QTinit", gdb_forget_tracing, IS_WHOLE },
	{ "QTDP:", gdb_define_tracepoint, ON_HUB },
	{ "QTDPsrc:", gdb_define_source, ON_HUB },
	{ "QTDV:", gdb_define_variable, ON_HUB },
	{ "QTStart", gdb_start_tracing, IS_WHOLE },
	{ "QTStop", gdb_stop_tracing, IS_WHOLE },
	{ "QTFrame:", gdb_select_frame, ON_HUB },
	{ "QTEnable:", gdb_enable_tracepoint, ON_HUB },
	{ "QTDisable:", gdb_disable_tracepoint, ON_HUB },
	{ "QTBuffer:circular:", gdb_set_circular, ON_HUB },
	{ "QTBuffer:size:", gdb_set_buffer_size, ON_HUB },
	{ "QTDisconnected:", gdb_set_disconnected, ON_HUB },
	{ "QTNotes:", gdb_take_notes, ON_HUB },
	{ "QTro", gdb_take_regions, ON_HUB },
	{ "qTStatus", gdb_tell_tracing, IS_WHOLE },
	{ "qTBuffer:", gdb_upload_frames, ON_HUB },
	{ "qTMinFTPILen", gdb_tell_smallest, IS_WHOLE },
	{ "qTP:", gdb_tell_tracepoint, ON_HUB },
	{ "qTV:", gdb_tell_variable, ON_HUB },
	{ "qTfP", gdb_first_piece, IS_WHOLE },
	{ "qTsP", gdb_next_piece, IS_WHOLE },
	{ "qTfSTM", gdb_first_markers, ON_MAIN | IS_WHOLE },
	{ "qTsSTM", gdb_next_markers, ON_MAIN | IS_WHOLE },
	{ "qTSTMat:", gdb_tell_marker, ON_MAIN },
	{ "qTfV", gdb_first_variable, IS_WHOLE },
	{ "qTsV", gdb_next_variable, IS_WHOLE },
	{ "QDisableRandomization:", gdb_disable_randomization, ON_HUB },
	{ "QStartupWithShell:", gdb_with_shell, ON_HUB },
	{ "QEnvironmentHexEncoded:", gdb_set_variable, ON_HUB },
	{ "QEnvironmentUnset:", gdb_unset_variable, ON_HUB },
	{ "QEnvironmentReset", gdb_reset_variables, IS_WHOLE },
	{ "QSetWorkingDir:", gdb_set_folder, ON_HUB },
	{ "qXfer:osdata:", gdb_transfer_osdata, ON_MAIN },
	{ "qXfer:", gdb_transfer, ON_HUB },
	{ "qSearch:memory:", gdb_search_memory, ON_MAIN },
	{ "qCRC:", gdb_sum_memory, ON_MAIN },
	{ "qfThreadInfo", gdb_first_threads, IS_WHOLE },
	{ "qsThreadInfo", gdb_more_threads, IS_WHOLE },
	{ "qThreadStopInfo", gdb_tell_stop_of, ON_HUB },
	{ "qThreadExtraInfo,", gdb_thread_name, ON_HUB },
	{ "qAttached", gdb_tell_attached, ON_HUB },
	{ "qC", gdb_current_thread, IS_WHOLE },
	{ "qShlibInfoAddr", gdb_tell_debug_address, IS_WHOLE },
	{ "qSymbol:", gdb_take_symbol, ON_HUB },
	{ "qGetTLSAddr:", gdb_find_tls, ON_HUB },
	{ "qRcmd,", take_command, ON_HUB },
	{ "vCont?", tell_actions, IS_WHOLE },
	{ "vCont;", gdb_continue_as_told, RESUMES },
	{ "vAttach;", gdb_attach, ON_MAIN },
	{ "vRun;", gdb_run, ON_MAIN },
	{ "vStopped", gdb_acknowledge, ON_MAIN | IS_WHOLE },
	{ "vCtrlC", gdb_take_interrupt, IS_WHOLE },
	{ "vKill;", gdb_kill, ON_MAIN },
	{ "vFile:", gdb_use_file, ON_MAIN },
	{ "?", tell_why, IS_WHOLE },
	{ "!", set_extended, IS_WHOLE },
	{ "g", gdb_read_registers, IS_WHOLE },
	{ "G", gdb_write_registers, ON_HUB },
	{ "p", gdb_read_register, ON_HUB },
	{ "P", gdb_write_register, ON_HUB },
	{ "m", gdb_read_memory, ON_HUB },
	{ "x", gdb_read_binary, ON_HUB },
	{ "M", gdb_write_memory, ON_HUB },
	{ "X", gdb_write_binary, ON_HUB },
	{ "H", gdb_set_thread, ON_HUB },
	{ "T", gdb_tell_thread_alive, ON_HUB },
	{ "Z", gdb_insert, ON_HUB },
	{ "z", gdb_remove, ON_HUB },
	{ "c", gdb_continue, RESUMES },
	{ "C", gdb_continue_with_signal, RESUMES },
	{ "s", gdb_step, RESUMES },
	{ "S", gdb_step_with_signal, RESUMES },
	{ "D", gdb_detach, ON_MAIN },
	{ "k", gdb_kill_all, ON_MAIN | IS_MUTE | IS_WHOLE },
	{ "R", gdb_restart, ON_MAIN | IS_MUTE },
};

/* --disable-packet, by gdbserver's names: of stop replies T, and what they have, tell.c looks. */
static bool is_disabled(const struct kymo_gdb *gdb, const char *name)
{
	char word[32];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(name, ":;,?"), name);
	return strlen(word) > 1 && gdb_is_disabled(gdb, word);
}

static const struct packet *find_packet(const struct kymo_gdb *gdb, struct gdb_words *words)
{
	for (size_t i = 0; i < kymo_countof(packets); i++) {
		struct gdb_words rest = *words;

		if (!gdb_take_text(&rest, packets[i].name))
			continue;
		if (is_disabled(gdb, packets[i].name) || (packets[i].flags & IS_WHOLE && !gdb_words_are_over(&rest)))
			return NULL;
		*words = rest;
		return &packets[i];
	}
	return NULL;
}

struct call {
	const struct packet *packet;
	struct kymo_gdb *gdb;
	struct gdb_words *words;
	struct gdb_text *reply;
};

static void run(void *data)
{
	const struct call *call = data;

	call->packet->run(call->gdb, call->words, call->reply);
}

enum gdb_answer gdb_answer(struct kymo_gdb *gdb, const char *packet, size_t n, struct gdb_text *reply)
{
	struct gdb_words words = { packet, packet + n };
	struct call call = { find_packet(gdb, &words), gdb, &words, reply };

	if (!call.packet)
		return GDB_ANSWERED;
	gdb_pads_look(gdb, packet, n);
	if (call.packet->flags & ON_MAIN)
		run(&call);
	else
		kymo_hub_run(gdb->hub, run, &call);
	if (!reply->n && call.packet->flags & RESUMES)
		return GDB_RUNS;
	return !reply->n && call.packet->flags & IS_MUTE ? GDB_MUTE : GDB_ANSWERED;
}
