// Package docs holds the documents of the project to the code: links, commands, flags, environment variables, series,
// calls of the API, files, and the messages that docs/troubleshoot.md explains. It has tests and nothing else.
package docs
