// Elements made by scripts.

export function make(tag, className, ...content) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...content);
  return element;
}

export function makeButton(className, ...content) {
  const button = make('button', className, ...content);
  button.type = 'button';
  return button;
}
