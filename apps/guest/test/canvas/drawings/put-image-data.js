const image = ctx.createImageData(width, height);
for (let y = 0; y < height; y += 1) {
  for (let x = 0; x < width; x += 1) {
    const at = (y * width + x) * 4;
    image.data[at] = (x * 255) / width;
    image.data[at + 1] = (y * 255) / height;
    image.data[at + 2] = ((x ^ y) * 2) % 256;
    image.data[at + 3] = 255;
  }
}
ctx.putImageData(image, 0, 0);
