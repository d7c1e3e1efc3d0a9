/** Reports each test, and what is said, as a line of JSON. Node.js calls it. */
export default async function* report(events) {
  for await (const { type, data } of events) {
    const line = translate(type, data);
    if (line) {
      yield JSON.stringify(line) + '\n';
    }
  }
}

function translate(type, data) {
  switch (type) {
    case 'test:pass':
    case 'test:fail':
      return ended(type, data);
    case 'test:diagnostic':
      return data.message.includes(':') ? { said: data.message } : undefined; // the counts have no colon
    case 'test:stdout':
    case 'test:stderr':
      return { said: data.message };
    default:
      return undefined;
  }
}

/** Of a file, which is a test too, only its own failure tells something. */
function ended(type, { name, nesting, file, skip, details }) {
  const passed = type === 'test:pass';
  if (nesting > 0 || (passed && file && name.endsWith('.mjs'))) {
    return undefined;
  }
  const cause = details.error?.cause ?? details.error;
  return {
    test: name,
    seconds: details.duration_ms / 1000,
    failure: passed ? '' : String(cause?.stack ?? cause),
    skipped: skip ? String(skip) : '',
  };
}
