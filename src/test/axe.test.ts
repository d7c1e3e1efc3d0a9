import { violations } from './axe';

it('finds what has no name, though no style sheet applies', async () => {
  document.body.innerHTML = '<main><h1>Title</h1><button></button><img src="a.png"><p>Text</p></main>';
  const found = await violations(document.body);
  expect(found.map((one) => one.split(':')[0])).toEqual(['button-name', 'image-alt']);
});
