ctx.font = '48px sans-serif';
ctx.fillText('😀🚀🌍🎨', 15, 70);
ctx.font = '24px sans-serif';
ctx.fillStyle = '#222';
ctx.fillText('Done ✅ party 🎉 family 👨‍👩‍👧', 15, 140);
ctx.fillText('flags 🇩🇪 🇯🇵 skin 👍🏽', 15, 200);
