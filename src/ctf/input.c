#include "ctf/input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctf/packet.h"
#include "ctf/reader.h"
#include "ctf/trace.h"
#include "wire/event.h"

/* Enough to see what is wrong; a hostile file has millions of reasons. */
#define MAX_WARNINGS 64

/* 40 MB. Beyond, further losses are added to the last one, so that memory stays bounded and no count is lost. */
#define MAX_LOSSES (1u << 20)

void kymo_input_init(struct input *input, char *name, int fd, uint64_t size, size_t window_size)
{
	*input = (struct input){ .name = name, .fd = fd, .size = size, .window_size = window_size };
}

void kymo_input_deinit(struct input *input)
{
	if (input->fd >= 0)
		close(input->fd);
	free(input->name);
	free(input->window);
}

/* Add a warning; without memory there is none, which ends nothing. All of them are about what is missing or in disorder
 * from where the stream is. */
__attribute__((format(printf, 3, 4))) static void warn(struct findings *findings, const struct input *input,
						       const char *format, ...)
{
	char *what, *sentence;
	va_list args;
	int n;

	if (input->tsc < findings->damaged_since)
		findings->damaged_since = input->tsc;
	if (findings->warnings.n == MAX_WARNINGS)
		return;
	va_start(args, format);
	what = kymo_format(format, args);
	va_end(args);
	if (!what)
		return;
	if (findings->warnings.n == MAX_WARNINGS - 1)
		n = asprintf(&sentence, "there is more damage than is listed here");
	else
		n = asprintf(&sentence, "%s: %s", input->name, what);
	free(what);
	if (n >= 0 && !kymo_vec_push(&findings->warnings, sentence))
		free(sentence);
}

static bool lose(struct findings *findings, const struct kymo_ctf_loss *loss)
{
	struct kymo_ctf_loss *last;

	if (findings->losses.n < MAX_LOSSES) {
		if (kymo_vec_push(&findings->losses, *loss))
			return true;
		findings->error = &kymo_error_no_memory;
		return false;
	}
	last = &findings->losses.items[MAX_LOSSES - 1];
	last->end = loss->end > last->end ? loss->end : last->end;
	last->events += loss->events;
	last->packets += loss->packets;
	return true;
}

static uint64_t position(const struct input *input)
{
	return input->window_offset + input->at;
}

static void set_limit(struct input *input)
{
	uint64_t content = input->content_end - input->window_offset;

	input->limit = input->in_packet && content < input->filled ? (size_t)content : input->filled;
}

/* Copy more of the file after what is left in the window. False at the end of the file or on an error. */
static bool fill_input(struct input *input, struct findings *findings)
{
	uint64_t from, room;
	ssize_t done;

	if (!input->window) {
		input->window = malloc(input->window_size);
		if (!input->window) {
			findings->error = &kymo_error_no_memory;
			return false;
		}
	}
	memmove(input->window, input->window + input->at, input->filled - input->at);
	input->window_offset += input->at;
	input->filled -= input->at;
	input->at = 0;
	from = input->window_offset + input->filled;
	room = from < input->size ? input->size - from : 0;
	room = room < input->window_size - input->filled ? room : input->window_size - input->filled;
	do {
		done = pread(input->fd, input->window + input->filled, (size_t)room, (off_t)from);
	} while (done < 0 && errno == EINTR);
	if (done < 0) {
		findings->error = kymo_error_errno(errno, "cannot read %s", input->name);
		return false;
	}
	input->filled += (size_t)done;
	set_limit(input);
	return done > 0;
}

/* Go to a place in the file at or after the present one. */
static void seek_forward(struct input *input, uint64_t offset)
{
	if (offset - input->window_offset <= input->filled) {
		input->at = (size_t)(offset - input->window_offset);
	} else {
		input->window_offset = offset;
		input->at = input->filled = 0;
	}
	set_limit(input);
}

/* What makes a packet header unusable, or NULL. */
static const char *header_wrong(const struct kymo_ctf_packet *packet, const uint8_t *uuid)
{
	if (packet->magic != KYMO_CTF_MAGIC)
		return "is not a CTF packet";
	if (memcmp(packet->uuid, uuid, sizeof(packet->uuid)))
		return "belongs to another trace";
	if (packet->stream_id)
		return "is of an unknown kind of stream";
	if ((packet->content_size | packet->packet_size) % 8 || packet->content_size < sizeof(*packet) * 8 ||
	    packet->packet_size < packet->content_size)
		return "has an impossible size";
	if (packet->timestamp_end < packet->timestamp_begin)
		return "ends before it begins";
	return NULL;
}

struct kymo_error *kymo_input_check(struct input *input, const uint8_t *uuid)
{
	struct kymo_ctf_packet packet;
	const char *wrong;
	ssize_t done;

	do {
		done = pread(input->fd, &packet, sizeof(packet), 0);
	} while (done < 0 && errno == EINTR);
	if (done < 0)
		return kymo_error_errno(errno, "cannot read %s", input->name);
	if ((size_t)done < sizeof(packet))
		return NULL;
	wrong = header_wrong(&packet, uuid);
	if (wrong)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s: the first packet %s", input->name, wrong);
	return NULL;
}

/* What the new packet's counters say about the time since the one before, which ended at `since`. */
static bool count_losses(struct input *input, const struct kymo_ctf_packet *packet, struct findings *findings)
{
	const struct kymo_ctf_packet *before = &input->packet;
	bool first = !input->n_packets;
	uint64_t since = first ? packet->timestamp_begin : before->timestamp_end;
	uint64_t discarded = first ? 0 : before->events_discarded;
	uint64_t seq = first ? 0 : before->packet_seq_num + 1;
	struct kymo_ctf_loss loss = { .begin = since, .cpu = packet->cpu_id };

	if (packet->packet_seq_num > seq) {
		loss.end = packet->timestamp_begin < since ? since : packet->timestamp_begin;
		loss.packets = packet->packet_seq_num - seq;
		if (!lose(findings, &loss))
			return false;
		if (!input->has_content && loss.end > findings->whole_since)
			findings->whole_since = loss.end;
	} else if (packet->packet_seq_num < seq) {
		warn(findings, input, "packet %" PRIu64 " follows packet %" PRIu64, packet->packet_seq_num,
		     before->packet_seq_num);
	}
	if (packet->events_discarded > discarded) {
		loss.end = packet->timestamp_end < since ? since : packet->timestamp_end;
		loss.packets = 0;
		loss.events = packet->events_discarded - discarded;
		return lose(findings, &loss);
	}
	if (packet->events_discarded < discarded)
		warn(findings, input, "the count of lost events runs backward at packet %" PRIu64,
		     packet->packet_seq_num);
	return true;
}

/* Begin the packet at the present place. False at the end of the stream. */
static bool begin_packet(struct input *input, const uint8_t *uuid, struct findings *findings)
{
	struct kymo_ctf_packet packet;
	uint64_t content_end, packet_end, begin;
	const char *wrong;

	while (input->filled - input->at < sizeof(packet))
		if (!fill_input(input, findings))
			break;
	input->ended = true;
	begin = position(input);
	if (findings->error || input->filled == input->at)
		return false;
	if (input->filled - input->at < sizeof(packet)) {
		warn(findings, input, "the last packet is cut off in its header; %zu bytes were left out",
		     input->filled - input->at);
		return false;
	}
	memcpy(&packet, input->window + input->at, sizeof(packet));
	wrong = header_wrong(&packet, uuid);
	if (!wrong && (__builtin_add_overflow(begin, packet.content_size / 8, &content_end) ||
		       __builtin_add_overflow(begin, packet.packet_size / 8, &packet_end) || packet_end > INT64_MAX))
		wrong = "has an impossible size";
	if (wrong) {
		warn(findings, input, "the packet at byte %" PRIu64 " %s; the rest of the stream was left out", begin,
		     wrong);
		return false;
	}
	if (!count_losses(input, &packet, findings))
		return false;
	input->ended = false;
	input->in_packet = true;
	input->packet = packet;
	input->n_packets++;
	input->has_content |= packet.content_size / 8 > sizeof(packet);
	input->packet_begin = begin;
	input->content_end = content_end;
	input->packet_end = packet_end;
	input->tsc = packet.timestamp_begin;
	input->packed = kymo_packed_begin(packet.timestamp_begin);
	input->at += sizeof(packet);
	set_limit(input);
	return true;
}

/* The event id of the record that stopped the decoder. False where there is too little of it. */
static bool read_id(const struct input *input, uint32_t *ret)
{
	const uint8_t *at = input->window + input->at;
	const size_t left = input->limit - input->at;
	struct kymo_packed packed = input->packed;
	uint64_t header;

	if (input->is_packed)
		return left && kymo_packed_read(&packed, at, left, ret);
	if (left < KYMO_EVENT_ARGS_OFFSET)
		return false;
	memcpy(&header, at, sizeof(header));
	*ret = (uint32_t)(header & KYMO_EVENT_ID_MAX);
	return true;
}

static bool has_no_thread(const struct input *input)
{
	return input->is_packed && !input->packed.has_thread;
}

/* What is left of the packet, if anything, is no record, whether all of it is in the window or not. */
static void warn_of_rest(struct input *input, const struct layout *layouts, uint32_t n_layouts,
			 struct findings *findings)
{
	uint64_t left = input->content_end - position(input);
	uint32_t largest = KYMO_CTF_MAX_RECORD, id;

	if (!left)
		return;
	if (read_id(input, &id)) {
		if (id >= n_layouts || !layouts[id].event) {
			warn(findings, input,
			     "the record at byte %" PRIu64 " has the unknown id %" PRIu32 "; %" PRIu64
			     " bytes of its packet were left out",
			     position(input), id, left);
			return;
		}
		if (has_no_thread(input)) {
			warn(findings, input,
			     "the record at byte %" PRIu64 " comes before its packet's first thread; %" PRIu64
			     " bytes of its packet were left out",
			     position(input), left);
			return;
		}
		largest = kymo_ctf_record_max(layouts[id].event);
	}
	if (left >= largest)
		warn(findings, input,
		     "the record at byte %" PRIu64 " is larger than %u bytes; %" PRIu64
		     " bytes of its packet were left out",
		     position(input), largest, left);
	else
		warn(findings, input,
		     "the record at byte %" PRIu64 " runs over the end of its packet; %" PRIu64 " bytes were left out",
		     position(input), left);
}

/* Is an unknown id what stopped the decoder, or no thread, or a record that is too large? More bytes don't help then.
 */
static bool is_hopeless(const struct input *input, const struct layout *layouts, uint32_t n_layouts)
{
	size_t left = input->limit - input->at;
	uint32_t id;

	if (!read_id(input, &id))
		return false;
	return id >= n_layouts || !layouts[id].event || has_no_thread(input) ||
	       left >= kymo_ctf_record_max(layouts[id].event);
}

bool kymo_input_advance(struct input *input, const uint8_t *uuid, const struct layout *layouts, uint32_t n_layouts,
			struct findings *findings)
{
	if (input->ended)
		return false;
	if (input->in_packet && input->window_offset + input->filled < input->content_end &&
	    !is_hopeless(input, layouts, n_layouts)) {
		if (fill_input(input, findings))
			return true;
		input->ended = true;
		if (!findings->error)
			warn(findings, input, "the last packet is cut off; %zu bytes were left out",
			     input->filled - input->at);
		input->at = input->limit = input->filled;
		return false;
	}
	if (input->in_packet) {
		warn_of_rest(input, layouts, n_layouts, findings);
		seek_forward(input, input->packet_end);
		input->in_packet = false;
		set_limit(input);
	}
	/* Outside of a packet nothing may be decoded. */
	input->limit = input->at;
	if (begin_packet(input, uuid, findings))
		return true;
	input->limit = input->at;
	return false;
}
