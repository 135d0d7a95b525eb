/* The summary's numbers as one JSON object; kymo-report(1) documents its members. */
#ifndef KYMO_REPORT_JSON_H
#define KYMO_REPORT_JSON_H

#include <stdio.h>

#include "ctf/ctf.h"
#include "report/model.h"
#include "report/names.h"

/* `reader` has been read to its end. */
struct kymo_error *kymo_json_write(const char *dir, const struct kymo_ctf_reader *reader, const struct model *model,
				   const struct names *names, FILE *out);

#endif
