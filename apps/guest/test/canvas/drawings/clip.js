ctx.beginPath();
ctx.arc(160, 120, 90, 0, 2 * Math.PI);
ctx.clip();
for (let x = 0; x < width; x += 20) {
  ctx.fillStyle = x % 40 === 0 ? '#006d77' : '#83c5be';
  ctx.fillRect(x, 0, 20, height);
}
ctx.beginPath();
ctx.rect(160, 0, 160, 120);
ctx.clip('evenodd');
ctx.fillStyle = '#ffddd2';
ctx.fillRect(0, 0, width, height);
