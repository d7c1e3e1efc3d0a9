/**
 * Gives elements a size and texts a width, which jsdom lacks, and installs observers of sizes that never report a
 * change. For beforeEach, with restoreAllMocks after each.
 */
export function stubSizes(height = 600) {
  jest.spyOn(Element.prototype, 'clientHeight', 'get').mockReturnValue(height);
  jest.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(height);
  jest.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(300);
  const context: unknown = { font: '', measureText: (text: string) => ({ width: 8 * text.length }) };
  jest.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(context as null);
}
