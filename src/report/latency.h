/* The summary's table of calls: how long they took, and which are left out. */
#ifndef KYMO_REPORT_LATENCY_H
#define KYMO_REPORT_LATENCY_H

#include "report/calls.h"
#include "report/page.h"
#include "report/summary.h"

/* Sentences about calls that have no duration; there is no sentence where there are none. */
#define MAX_NOTES 8
#define NOTE_SIZE 160

struct notes {
	char texts[MAX_NOTES][NOTE_SIZE];
	unsigned int n;
};

/* After kymo_calls_finish(). */
void kymo_latency_notes(const struct calls *calls, struct notes *ret);

/* Nothing where no function has an entry and a return. */
struct kymo_error *kymo_latency_write(const struct summary *summary, const struct page *page);

#endif
