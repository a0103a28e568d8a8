/*
 * signature.c: the table of such kinds of files (signature.h).
 *
 * The first row that fits counts: a ZIP archive is told by the name of its first member.
 * Thread: any.
 */
#include "compute/codecs/signature.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define SEARCHED_MAX 512 /* bytes of the start that a mark may lie in */

struct signature {
    const char *start; /* the first bytes, or NULL: only the media types count */
    size_t size;       /* of them */
    const char *mark;  /* stands within the first bytes too, or NULL */
    const char *media[4];
    const char *sentence;
};

#define START(text) text, sizeof(text) - 1

#define FITS                                                                                       \
    "a FITS file, which is not read here; read it with astropy (Table.read) and send CSV, JSON "   \
    "or NPY"
#define VOTABLE                                                                                    \
    "a VOTable, which is not read here; read it with astropy (Table.read) or ask the archive for " \
    "CSV"
#define GZIP   "gzip-compressed data, which is not taken; send it unpacked (gunzip)"
#define NPZ    "a NumPy .npz archive; send one array of it, saved by numpy.save (.npy)"
#define EXCEL  "an Excel workbook; save the sheet as CSV and send that"
#define ZIP    "a ZIP archive; unpack it and send the file in it"
#define HDF5   "an HDF5 file, which is not read here; send the columns as CSV, JSON or NPY"
#define PACKED "compressed data, which is not taken; send it unpacked"
#define UTF16  "UTF-16 text; save it as UTF-8"

static const struct signature signatures[] = {
    {START("SIMPLE  ="), NULL, {"application/fits", "image/fits"}, FITS},
    {START("XTENSION="), NULL, {NULL}, FITS},
    {START("<"), "<VOTABLE", {"application/x-votable+xml", "text/xml+votable"}, VOTABLE},
    {START("<"), "<html", {"text/html"}, "a web page, perhaps an error message in place of data"},
    {START("<"), "<!DOCTYPE html", {NULL}, "a web page, perhaps an error message in place of data"},
    {START("<?xml"), NULL, {"application/xml", "text/xml"}, "XML, which is not read here"},
    {START("\x1f\x8b"), NULL, {"application/gzip", "application/x-gzip"}, GZIP},
    {START("PK\x03\x04"), ".npy", {"application/x-npz"}, NPZ},
    {START("PK\x03\x04"),
     "[Content_Types].xml",
     {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
     EXCEL},
    {START("PK\x03\x04"), "xl/", {NULL}, EXCEL},
    {START("PK\x03\x04"), NULL, {"application/zip"}, ZIP},
    {START("\xd0\xcf\x11\xe0"), NULL, {"application/vnd.ms-excel"}, EXCEL},
    {START("\x89HDF\r\n\x1a\n"), NULL, {"application/x-hdf5", "application/x-hdf"}, HDF5},
    {START("PAR1"),
     NULL,
     {"application/vnd.apache.parquet", "application/x-parquet"},
     "a Parquet file, which is not read here; send the columns as CSV, JSON or NPY"},
    {START("BZh"), NULL, {"application/x-bzip2"}, PACKED},
    {START("\xfd"
           "7zXZ"),
     NULL,
     {"application/x-xz"},
     PACKED},
    {START("\x28\xb5\x2f\xfd"), NULL, {"application/zstd"}, PACKED},
    {START("%PDF-"), NULL, {"application/pdf"}, "a PDF document; send the numbers themselves"},
    {START("\x80\x04\x95"), NULL, {NULL}, "a Python pickle; send the array with numpy.save (.npy)"},
    {START("\xff\xfe"), NULL, {NULL}, UTF16},
    {START("\xfe\xff"), NULL, {NULL}, UTF16},
};

/* Whether `mark` stands within the bytes, whatever its case. */
static bool mark_stands(const char *bytes, size_t size, const char *mark) {
    size_t length = strlen(mark);
    size = size < SEARCHED_MAX ? size : SEARCHED_MAX;
    for (size_t at = 0; at + length <= size; at++) {
        if (strncasecmp(bytes + at, mark, length) == 0) {
            return true;
        }
    }
    return false;
}

const char *signature_of_bytes(const void *bytes, size_t size) {
    const char *text = bytes;
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        const struct signature *row = &signatures[i];
        if (size >= row->size && memcmp(text, row->start, row->size) == 0 &&
            (row->mark == NULL || mark_stands(text, size, row->mark))) {
            return row->sentence;
        }
    }
    return NULL;
}

const char *signature_of_media(const char *media) {
    size_t size = media != NULL ? strcspn(media, "; \t") : 0;
    for (size_t i = 0; size > 0 && i < sizeof signatures / sizeof signatures[0]; i++) {
        const char *const *row = signatures[i].media;
        for (size_t k = 0; k < sizeof signatures[i].media / sizeof *row && row[k] != NULL; k++) {
            if (strlen(row[k]) == size && strncasecmp(media, row[k], size) == 0) {
                return signatures[i].sentence;
            }
        }
    }
    return NULL;
}
