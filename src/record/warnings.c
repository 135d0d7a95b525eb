/* What the user is told of a recording, once. */
#include "record/warnings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/recording.h"

/* FNV-1a, without digits. */
static uint64_t hash_of(const char *sentence)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; *sentence; sentence++)
		if (*sentence < '0' || *sentence > '9')
			hash = (hash ^ (uint8_t)*sentence) * 0x100000001b3ull;
	return hash;
}

void recording_tell(const char *sentence, void *data)
{
	struct recording *recording = data;
	uint64_t hash = hash_of(sentence);
	char *copy;

	if (recording->warnings.is_holding) {
		copy = strdup(sentence);
		if (copy && kymo_vec_push(&recording->warnings.held, copy))
			return;
		free(copy);
	}
	for (size_t i = 0; i < recording->warnings.told.n; i++)
		if (recording->warnings.told.items[i] == hash)
			return;
	if (recording->wanted.options->warn && (!recording->run.tree || kymo_vec_push(&recording->warnings.told, hash)))
		recording->wanted.options->warn(sentence, recording->wanted.options->data);
}

void recording_release_warnings(struct recording *recording, bool tell)
{
	recording->warnings.is_holding = false;
	for (size_t i = 0; i < recording->warnings.held.n; i++) {
		if (tell)
			recording_tell(recording->warnings.held.items[i], recording);
		free(recording->warnings.held.items[i]);
	}
	kymo_vec_deinit(&recording->warnings.held);
}

void recording_warn(struct recording *recording, const char *format, ...)
{
	char sentence[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	recording_tell(sentence, recording);
}
