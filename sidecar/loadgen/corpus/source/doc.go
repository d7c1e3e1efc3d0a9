// Package source reads corpora that are not built in: texts in a file, a directory or an
// S3-compatible bucket. It brings every text to the length of a starter, reports the texts that
// it cannot use, and rereads the source at an interval. If a reading fails, the previous texts
// stay in use.
//
// A document is one of:
//   - .jsonl: one object a line, {"id", "topic", "text"}; other members are ignored. Or a conversation of a
//     question set, such as MT-Bench or ShareGPT: its user's turns are asked in order, and the target
//     answers
//   - .json: one such object, or a list of them
//   - .md: one text, whose heading "# …" is its topic
//   - .txt: one text
//
// The topic of a .txt, and of a .md without a heading, is its folder, or its own name at the
// top. Its id is its path.
package source
