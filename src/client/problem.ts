/** A refused or failed call, with the sidecar's text (RFC 9457). */
export class Problem extends Error {
  constructor(
    /** The HTTP status, 0 without an answer. */
    public readonly status: number,
    /** What is wrong, and what to do. */
    message: string,
    /** The invalid field by its name in the API, such as "slo.ttft". */
    public readonly field?: string,
    /** The values that the field allows. */
    public readonly allowed?: string
  ) {
    super(message);
    this.name = 'Problem';
  }
}

/** Reads a problem document. Any other body is described by the HTTP status. */
export function toProblem(status: number, body: unknown): Problem {
  const document = isRecord(body) ? body : {};
  const field = text(document.field);
  const allowed = text(document.allowed);
  const words = text(document.detail) ?? text(document.title) ?? text(document.message) ?? describe(status);
  return new Problem(status, words, field, allowed);
}

/** Turns any thrown value into a problem. */
export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : toProblem(0, error);
}

function describe(status: number): string {
  switch (status) {
    case 0:
      return 'No response. Check the network and that the server is running.';
    case 403:
      return 'Your role can view this but not change it.';
    default:
      return `The server answered with status ${status}.`;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
