package sim

import "slices"

// tree is a prefix tree of blocks: each is a node below the block before it. Nodes
// have small numbers, which are used again, so that what else is known of a node is kept
// in slices by its number. Node 0 is the root, which is no block.
//
// Most nodes have one child, which they name themselves: a walk down a known prefix
// compares keys in an array. Their other children are found by a map.
type tree struct {
	nodes    []node
	spare    int32 // a chain of unused nodes, by their parent
	count    int   // nodes in use, without the root
	branches map[branch]int32
}

// node is in use as long as somebody holds it or it has children.
type node struct {
	key           uint64
	parent, child int32
	others        int32 // children that it does not name
	holds         int32 // children, and holds from outside
}

// branch is a child that its parent does not name.
type branch struct {
	parent int32
	key    uint64
}

// newTree is an empty one that may come to have so many nodes.
func newTree(size int) tree {
	return tree{nodes: make([]node, 1, room(size)), branches: map[branch]int32{}}
}

// room is the capacity that a slice for so many nodes, and the root, begins with: all of
// it unless that is much.
func room(nodes int) int { return 1 + min(nodes, 1<<16) }

// find is the child with a key, 0 without one.
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

// add makes a child that the parent does not have. Whoever adds it must hold it, or a
// node below it.
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

// rename gives a node a key that no other child of its parent has.
func (t *tree) rename(id int32, key uint64) {
	n := &t.nodes[id]
	if t.nodes[n.parent].child != id {
		delete(t.branches, branch{n.parent, n.key})
		t.branches[branch{n.parent, key}] = id
	}
	n.key = key
}

// hold keeps a node and those above it.
func (t *tree) hold(id int32) { t.nodes[id].holds++ }

// drop takes back a hold. Nodes that nobody holds any more are gone.
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

// doubled is a slice with room for one more: where it has none, for as many as there
// are, so that it is copied less often than by append.
func doubled[T any](s []T) []T {
	if len(s) == cap(s) {
		return slices.Grow(s, len(s))
	}
	return s
}
