// Package source reads corpora that are not built in: a file, a directory or an
// S3-compatible bucket of texts. It brings every text to the length of a starter,
// says what it could not use, and reads again from time to time. Where a reading
// fails, the texts of the one before stay in use.
//
// A document is one of:
//   - .jsonl: one object a line, {"id", "topic", "text"}; other members are ignored. Or a conversation of a
//     question set, such as MT-Bench or ShareGPT: of it, the user's turns are asked in their order, and the
//     target answers
//   - .json: one such object, or a list of them
//   - .md: one text, whose heading "# …" is its topic
//   - .txt: one text
//
// The topic of a .txt, and of a .md without a heading, is the folder that it lies
// in, or at the top its own name. Its id is its path.
package source
