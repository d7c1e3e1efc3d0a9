// Package members distributes the load over several processes: a coordinator, which is the
// load generator with its store, its API and its screens, and members, each of which holds a
// part of the conversations. They communicate through NATS JetStream.
//
// The coordinator writes an order for each lane, which defines the run, and a share for each
// member, which defines the number of conversations and their numbers. Members watch both. A
// member has a lease, which it renews. One that cannot renew it stops before the lease ends, by
// its own monotonic clock, so that two members never hold one conversation number. The
// conversations of a member whose lease has ended are cancelled and replaced. No conversation
// moves to another member.
//
// A member sends a report each second, and every turn that has ended. Whether a turn counts
// depends on the steps that its member was in when it began and ended, never on a clock. Turns
// are delivered at least once, and stored once.
//
// The coordinator may be killed. Members continue with the numbers that they have, JetStream
// keeps their messages, and the next coordinator takes over the run.
package members
