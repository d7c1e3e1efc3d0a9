// Package clienterror holds the bound on the load generator's own error against the true error: that of its figures
// less what a server with known token times has sent, while the client is kept from running. Its test has the build
// tag verify.
package clienterror
