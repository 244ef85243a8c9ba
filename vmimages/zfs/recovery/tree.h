/* The content of a tree of files, as a mark. */
#ifndef TORTURE_TREE_H
#define TORTURE_TREE_H

#include "mark.h"

/* Names, attributes, extended attributes and data of all files below `root`, whose mount point it may be. Returns 0, or
 * the errno of the first failure. */
int mark_tree(char *root, mark_t *content);

#endif
