// Package docs checks the project's documents against the code: links, commands, flags, environment variables,
// series, API calls, files, and the messages that docs/troubleshoot.md explains. It has only tests.
package docs
