// Package members kills members, the coordinator and the NATS server between them, again and
// again, behind the build tag members. All are processes of their own, under load against the
// simulated cluster, which notes who sent what. Meanwhile and afterwards it holds what was
// acknowledged against what is stored, and measures how long each recovery takes.
package members
