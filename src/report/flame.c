/*
 * A box a function: its width is the part of all records, its callers are below it. Boxes that are too narrow for a
 * pixel are left out. Without its script the page shows the whole graph, and names as tooltips.
 */
#include "report/flame.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "report/text.h"

#define ROW 18      /* pixels */
#define LEAST 20000 /* of the whole, the part of a box that is drawn */

static const char style[] = "body{font:13px sans-serif;margin:12px;background:#fff;color:#222}\n"
			    "h1{font-size:16px;margin:0 0 6px}\n"
			    "p{margin:4px 0}\n"
			    "#flame{width:100%;display:block;border:1px solid #ccc}\n"
			    "#flame svg{cursor:pointer}\n"
			    "#flame rect{stroke:#fff;stroke-width:.5}\n"
			    "#flame text{font:12px monospace;pointer-events:none}\n"
			    ".found rect{fill:#c060e0!important}\n"
			    ".faded{opacity:.5}\n";

/* Boxes have their place in attributes: data-x and data-w, parts of the whole. */
static const char script[] =
	"var boxes=Array.from(document.querySelectorAll('#flame svg'));\n"
	"var says=document.getElementById('says'),word=document.getElementById('word');\n"
	"function part(box,name){return parseFloat(box.getAttribute(name))}\n"
	"function zoom(to){\n"
	" var x=part(to,'data-x'),w=part(to,'data-w'),d=part(to,'data-d');\n"
	" boxes.forEach(function(box){\n"
	"  var bx=part(box,'data-x'),bw=part(box,'data-w'),bd=part(box,'data-d'),above=bd<d&&bx<=x&&bx+bw>=x+w;\n"
	"  var shown=above||(bx<x+w&&bx+bw>x&&bd>=d);\n"
	"  box.style.display=shown?'':'none';\n"
	"  box.setAttribute('class',box.getAttribute('class').replace(' faded','')+(above?' faded':''));\n"
	"  box.setAttribute('x',above?'0%':100*(bx-x)/w+'%');\n"
	"  box.setAttribute('width',above?'100%':100*bw/w+'%');\n"
	" });\n"
	"}\n"
	"function search(){\n"
	" var test,sum=0,ends={};\n"
	" try{test=word.value?new RegExp(word.value):null}catch(e){says.textContent='no regular expression';return}\n"
	" boxes.forEach(function(box){\n"
	"  var found=test&&test.test(box.getAttribute('data-n'));\n"
	"  box.setAttribute('class',box.getAttribute('class').replace(' found','')+(found?' found':''));\n"
	"  if(found)ends[part(box,'data-d')+'/'+part(box,'data-x')]=box;\n"
	" });\n"
	" var reached=-1;\n"
	" Object.values(ends).sort(function(a,b){return "
	"part(a,'data-x')-part(b,'data-x')||part(a,'data-d')-part(b,'data-d')})\n"
	"  .forEach(function(box){var "
	"x=part(box,'data-x'),w=part(box,'data-w');if(x>=reached-1e-9){sum+=w;reached=x+w}});\n"
	" says.textContent=test?(100*sum).toFixed(1)+'% of all records':'';\n"
	"}\n"
	"boxes.forEach(function(box){\n"
	" box.addEventListener('click',function(){zoom(box)});\n"
	" box.addEventListener('mouseover',function(){if(!word.value)says.textContent=box.firstElementChild."
	"textContent});\n"
	"});\n"
	"word.addEventListener('input',search);\n"
	"document.getElementById('whole').addEventListener('click',function(){zoom(boxes[0])});\n";

void kymo_flame_escape(const char *text, FILE *out)
{
	for (; *text; text++)
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		case '\'':
			fputs("&#39;", out);
			break;
		default:
			putc(*text, out);
		}
}

/* One color a name, of warm ones. */
static void write_color(const char *name, FILE *out)
{
	uint32_t hash = 0x811c9dc5;

	if (*name == '[') {
		fputs("#c8c8c8", out);
		return;
	}
	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x01000193;
	fprintf(out, "#%02x%02x%02x", 205 + hash % 50, 90 + (hash >> 8) % 120, 40 + (hash >> 16) % 50);
}

static void write_box(const struct folds *folds, uint32_t at, uint64_t from, uint32_t rows, FILE *out)
{
	const struct fold *fold = &folds->items.items[at];
	const char *name = at ? kymo_folds_name(folds, at) : "all";
	const uint64_t whole = folds->items.items[0].total;
	const double all = whole ? (double)whole : 1, x = (double)from / all, w = (double)fold->total / all;
	char count[TEXT_NUMBER];

	fprintf(out,
		"<svg class=\"box\" x=\"%.4f%%\" y=\"%u\" width=\"%.4f%%\" height=\"%d\" data-x=\"%.9f\" "
		"data-w=\"%.9f\" data-d=\"%" PRIu32 "\" data-n=\"",
		100 * x, (rows - fold->depth) * ROW, 100 * w, ROW, x, w, fold->depth);
	kymo_flame_escape(name, out);
	fputs("\"><title>", out);
	kymo_flame_escape(name, out);
	fprintf(out, " (%s %s, %.2f%%)</title><rect width=\"100%%\" height=\"100%%\" fill=\"",
		kymo_text_count(count, fold->total), fold->total == 1 ? "record" : "records", 100 * w);
	write_color(name, out);
	fprintf(out, "\"/><text x=\"3\" y=\"%d\">", ROW - 5);
	kymo_flame_escape(name, out);
	fputs("</text></svg>\n", out);
}

static bool is_drawn(const struct folds *folds, uint32_t at)
{
	return folds->items.items[at].total >= folds->items.items[0].total / LEAST;
}

/* `from`, where each box begins: those of one parent beside each other, by name. How many are not drawn. */
static size_t place_boxes(const struct folds *folds, const uint32_t *sorted, uint64_t *from)
{
	const size_t n = folds->items.n - 1;
	size_t hidden = 0;
	uint64_t next = 0;

	/* Parents come before their children in `sorted`, as it is by their indices. */
	for (size_t i = 0; i < n; i++) {
		const struct fold *fold = &folds->items.items[sorted[i]];

		if (!i || folds->items.items[sorted[i - 1]].parent != fold->parent)
			next = from[fold->parent];
		from[sorted[i]] = next;
		next += fold->total;
		hidden += !is_drawn(folds, sorted[i]);
	}
	return hidden;
}

static uint32_t deepest(const struct folds *folds)
{
	uint32_t depth = 0;

	for (uint32_t i = 0; i < folds->items.n; i++)
		if (folds->items.items[i].depth > depth && is_drawn(folds, i))
			depth = folds->items.items[i].depth;
	return depth;
}

struct kymo_error *kymo_flame_write(const struct folds *folds, const char *title, const char *note, FILE *out)
{
	const size_t n = folds->items.n - 1;
	const uint32_t rows = deepest(folds);
	kymo_cleanup_free uint32_t *sorted = kymo_folds_sorted(folds, false);
	kymo_cleanup_free uint64_t *from = calloc(n + 1, sizeof(*from));
	size_t hidden;

	if (!sorted || !from)
		return &kymo_error_no_memory;
	hidden = place_boxes(folds, sorted, from);
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>", out);
	kymo_flame_escape(title, out);
	fprintf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>", style);
	kymo_flame_escape(title, out);
	fputs("</h1>\n<p>", out);
	kymo_flame_escape(note, out);
	if (hidden)
		fprintf(out, " %zu %s too narrow to be drawn.", hidden, hidden == 1 ? "box is" : "boxes are");
	fputs("</p>\n<p><input id=\"word\" type=\"search\" placeholder=\"search: regular expression\" size=\"30\"> "
	      "<button id=\"whole\" type=\"button\">whole graph</button> <span id=\"says\"></span></p>\n",
	      out);
	fprintf(out, "<svg id=\"flame\" xmlns=\"http://www.w3.org/2000/svg\" height=\"%u\">\n", (rows + 1) * ROW);
	write_box(folds, 0, 0, rows, out);
	for (size_t i = 0; i < n; i++)
		if (is_drawn(folds, sorted[i]))
			write_box(folds, sorted[i], from[sorted[i]], rows, out);
	fprintf(out, "</svg>\n<script>\n%s</script>\n</body>\n</html>\n", script);
	return NULL;
}
