// Package members makes several load generators one: a coordinator, which is the load
// generator with its store, its API and its screens, and members, each of which holds a part
// of the conversations. What they say to each other goes through NATS JetStream.
//
// The coordinator writes an order for each lane, which says what is to be done, and a share
// for each member, which says of how many conversations and of which numbers. Members watch
// both. A member has a lease, which it renews; one that cannot renew it stops by itself before
// the lease ends, by its own monotonic clock, so that two members never hold one conversation
// number. What a dead member held is cancelled and replaced; no conversation moves.
//
// What comes back is a report a second, and every turn that has ended. A turn is judged by the
// step that its member was in when it began and ended, never by a clock. Turns are handed over
// at least once, and stored once.
//
// The coordinator may be killed. Members go on with the numbers that they have, JetStream
// keeps what they say, and the coordinator that starts next takes the run over.
package members
