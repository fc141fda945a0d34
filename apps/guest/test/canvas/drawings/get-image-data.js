const gradient = ctx.createLinearGradient(0, 0, width, 0);
gradient.addColorStop(0, '#06d6a0');
gradient.addColorStop(1, '#ef476f');
ctx.fillStyle = gradient;
ctx.fillRect(0, 0, width, height / 2);
const image = ctx.getImageData(0, 0, width, height / 2);
for (let at = 0; at < image.data.length; at += 4) {
  const grey = (image.data[at] + image.data[at + 1] + image.data[at + 2]) / 3;
  image.data.fill(grey, at, at + 3);
}
ctx.putImageData(image, 0, height / 2);
