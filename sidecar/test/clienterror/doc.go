// Package clienterror compares the bound on the load generator's own error with the true error: its figures minus what
// a server with known token times has sent, while the client is kept from running. Its test has the build tag verify.
package clienterror
