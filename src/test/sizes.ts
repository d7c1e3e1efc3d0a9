/**
 * Gives elements a size, room to scroll in, and texts a width, which jsdom does not, and observers
 * of sizes, who never hear of a change. For beforeEach, with restoreAllMocks after each.
 */
export function stubSizes(height = 600) {
  jest.spyOn(Element.prototype, 'clientHeight', 'get').mockReturnValue(height);
  jest.spyOn(Element.prototype, 'scrollHeight', 'get').mockReturnValue(1e6); // room to scroll to
  jest.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(height);
  jest.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(300);
  const context: unknown = { font: '', measureText: (text: string) => ({ width: 8 * text.length }) };
  jest.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(context as null);
  const observer: unknown = class {
    observe = () => undefined;
    unobserve = () => undefined;
    disconnect = () => undefined;
  };
  Object.assign(Element.prototype, {
    scrollTo(this: Element, { top = 0 }: ScrollToOptions) {
      this.scrollTop = top;
    },
  });
  Object.assign(global, { ResizeObserver: observer, IntersectionObserver: observer });
}
