/* Structures in the metadata. Private to the room. */
#ifndef KYMO_CTF_PARSE_SHAPE_H
#define KYMO_CTF_PARSE_SHAPE_H

#include "base/shape.h"
#include "ctf/parser.h"

/* "struct { ... }" as kymo_tsdl_shape() writes it, of one byte at least. */
bool kymo_parse_shape(struct parser *p, struct kymo_shape **ret);

#endif
