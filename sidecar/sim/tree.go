package sim

import "slices"

// tree is a prefix tree of blocks: each block is a node below the block before it. Nodes have small numbers, which are
// reused, so that other data of a node can be kept in slices by that number. Node 0 is the root and no block.
//
// A node stores the number of its first child. Most nodes have one child, so that a walk down a known prefix compares
// keys in an array. Further children are in a map.
type tree struct {
	nodes    []node
	spare    int32 // first of a list of unused nodes, linked by their parent
	count    int   // nodes in use, without the root
	branches map[branch]int32
}

// node is in use as long as it is held or has children.
type node struct {
	key           uint64
	parent, child int32
	others        int32 // children besides child
	holds         int32 // children, and holds from outside
}

// branch identifies a child that is not its parent's first child.
type branch struct {
	parent int32
	key    uint64
}

// newTree returns an empty tree with memory for some of size nodes.
func newTree(size int) tree {
	return tree{nodes: make([]node, 1, initialCapacity(size)), branches: map[branch]int32{}}
}

// initialCapacity returns the initial capacity of a slice for the root and other nodes. It is limited, so that large
// caches start small.
func initialCapacity(nodes int) int { return 1 + min(nodes, 1<<16) }

// find returns the child with a key, or 0.
func (t *tree) find(parent int32, key uint64) int32 {
	p := &t.nodes[parent]
	if p.child != 0 && t.nodes[p.child].key == key {
		return p.child
	}
	if p.others == 0 {
		return 0
	}
	return t.branches[branch{parent, key}]
}

// add makes a new child; the parent must not have one with this key. The caller must hold the child, or a node below
// it.
func (t *tree) add(parent int32, key uint64) int32 {
	id := t.spare
	if id == 0 {
		id = int32(len(t.nodes))
		t.nodes = append(doubled(t.nodes), node{})
	} else {
		t.spare = t.nodes[id].parent
	}
	t.nodes[id] = node{key: key, parent: parent}
	p := &t.nodes[parent]
	p.holds++
	if p.child == 0 {
		p.child = id
	} else {
		p.others++
		t.branches[branch{parent, key}] = id
	}
	t.count++
	return id
}

// rename changes a node's key to one that no other child of its parent has.
func (t *tree) rename(id int32, key uint64) {
	n := &t.nodes[id]
	if t.nodes[n.parent].child != id {
		delete(t.branches, branch{n.parent, n.key})
		t.branches[branch{n.parent, key}] = id
	}
	n.key = key
}

// hold keeps a node and its ancestors in use.
func (t *tree) hold(id int32) { t.nodes[id].holds++ }

// drop undoes one hold. Nodes without holds are freed.
func (t *tree) drop(id int32) {
	for id != 0 {
		n := &t.nodes[id]
		if n.holds--; n.holds > 0 {
			return
		}
		parent := n.parent
		if p := &t.nodes[parent]; p.child == id {
			p.child = 0
		} else {
			p.others--
			delete(t.branches, branch{parent, n.key})
		}
		*n = node{parent: t.spare}
		t.spare = id
		t.count--
		id = parent
	}
}

// doubled returns the slice with capacity for at least one more element. A full slice doubles, so that it is copied
// less often than by append.
func doubled[T any](s []T) []T {
	if len(s) == cap(s) {
		return slices.Grow(s, len(s))
	}
	return s
}
