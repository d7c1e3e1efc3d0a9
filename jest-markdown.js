/** A Markdown file is imported as its text, as Rspack does with asset/source. */
module.exports = { process: (text) => ({ code: `module.exports = ${JSON.stringify(text)};` }) };
